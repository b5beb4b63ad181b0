//! Analyzes the code of a short function before it is changed.

/// The size up to which a function has no room for an absolute jump.
const SHORT: usize = 16;

/// `ret` (Intel's manual, volume 2).
const RET: u8 = 0xc3;

/// `endbr64`, which may be the first instruction.
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// Whether the function at `address` only returns a constant, as unsupported functions do.
pub(super) fn only_returns(address: usize) -> bool {
    let code = first_bytes(address);
    let code = code.strip_prefix(&ENDBR64).unwrap_or(&code);
    // `mov eax, …` takes four bytes of a constant.
    matches!(code, [0xb8, _, _, _, _, RET, ..])
}

/// Whether the function at `address` ends within [`SHORT`] bytes and calls no other: it cannot throw.
pub(super) fn calls_nothing(address: usize) -> bool {
    let code = first_bytes(address);
    let Some(end) = code.iter().position(|byte| *byte == RET) else { return false };
    let code = code.get(..end).unwrap_or_default();
    // A direct `call`, an indirect one, or a jump out. Other instructions with such bytes count as one.
    let indirect = |pair: &[u8]| matches!(pair, [0xff, mode] if matches!(mode >> 3 & 7, 2..=5));
    !code.iter().any(|byte| matches!(byte, 0xe8 | 0xe9 | 0xeb)) && !code.windows(2).any(indirect)
}

fn first_bytes(address: usize) -> [u8; SHORT] {
    // SAFETY: a function begins there. Functions are aligned to 16 bytes, or followed by code or the rest of a page.
    unsafe { std::ptr::with_exposed_provenance::<[u8; SHORT]>(address).read_unaligned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(code: &[u8]) -> (bool, bool) {
        let mut bytes = [0x90; SHORT];
        bytes[..code.len()].copy_from_slice(code);
        let address = (&raw const bytes).expose_provenance();
        (only_returns(address), calls_nothing(address))
    }

    #[test]
    fn short_functions_are_told_apart() {
        // mov eax, 44; ret
        assert_eq!(at(&[0xb8, 44, 0, 0, 0, 0xc3]), (true, true));
        assert_eq!(at(&[0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 44, 0, 0, 0, 0xc3]), (true, true));
        // lock inc dword ptr [rdi + 8]; xor eax, eax; ret
        assert_eq!(at(&[0xf0, 0xff, 0x47, 8, 0x31, 0xc0, 0xc3]), (false, true));
        // sub rsp, 8; call …; add rsp, 8; ret
        assert_eq!(at(&[0x48, 0x83, 0xec, 8, 0xe8, 1, 2, 3, 4, 0x48, 0x83, 0xc4, 8, 0xc3]), (false, false));
        // call [rax + 8]; ret
        assert_eq!(at(&[0xff, 0x50, 8, 0xc3]), (false, false));
        // jmp …
        assert_eq!(at(&[0xe9, 1, 2, 3, 4]), (false, false));
    }
}
