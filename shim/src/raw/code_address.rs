//! Addresses of functions that no constant holds.
//!
//! The dynamic loader writes every address in a constant at the start of each process, also of those that never meet Unified Runtime. The
//! compiler turns a `match` whose values are constants into a table, and a function's address is a constant to it.

/// The address of a function, made by an instruction where it is needed.
macro_rules! code_address {
    ($($function:tt)*) => {{
        let address: *mut std::ffi::c_void;
        // SAFETY: the instruction adds two numbers, and has no other effect.
        unsafe {
            std::arch::asm!(
                "lea {}, [rip + {}]",
                out(reg) address,
                sym $($function)*,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        address
    }};
}
pub(crate) use code_address;

#[cfg(test)]
mod tests {
    fn number<const NUMBER: usize>() -> usize {
        NUMBER
    }

    #[test]
    fn it_is_that_of_the_function() {
        for (address, expected) in [(code_address!(number::<3>), 3), (code_address!(number::<4>), 4)] {
            // SAFETY: a function of this signature.
            let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, fn() -> usize>(address) };
            assert_eq!(function(), expected);
        }
    }
}
