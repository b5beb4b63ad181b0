//! Hooks in which the compiler knows the function: for those of which programs make the most calls.

/// Makes such hooks of rows, for the functions for which `$is_frequent` (a `const fn`) holds. The function of a row
/// passes on to `$take`: the number of the library, the function, its arguments, a closure that calls a C function with
/// its signature and these arguments, with its answers to other addresses, and the arguments as words, if there are no
/// more than fit into registers. A hook begins as `$begin` says, a macro that gets the function to jump to and the
/// number of the hook.
macro_rules! known_hooks {
    ([$is_frequent:path, $reader:expr, $take:path, $begin:ident]
        $(#[doc = $doc:literal] fn $name:ident($($param:ident: $role:ident),*) in $table:ident[$slot:literal] $verb:ident $kind:ident $(, $twin:ident)?;)*) => {
        /// The hook of each library.
        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod hook_of {
            use super::*;

            $(
                #[unsafe(naked)]
                pub(super) unsafe extern "C-unwind" fn $name<const VIA: usize>() {
                    $begin!(known::$name::<VIA>, hooks::number(VIA, Function::$name))
                }
            )*
        }

        #[allow(non_snake_case, reason = "the names are those of the C functions")]
        mod known {
            use super::*;

            $(
                pub(super) extern "C-unwind" fn $name<const VIA: usize>($($param: Arg<$role>),*) -> ResultCode {
                    path::$name(VIA, $($param),*)
                }
            )*
        }

        /// One for each function, not for each hook.
        #[allow(non_snake_case, clippy::too_many_arguments, reason = "a row has the name and the parameters of C")]
        mod path {
            use super::*;

            $(
                #[allow(unused_mut, unused_variables, reason = "a function may have no parameters")]
                #[inline(never)]
                pub(super) fn $name(via: usize, $($param: Arg<$role>),*) -> ResultCode {
                    let mut arguments = Arguments::none(Function::$name, $reader);
                    $(arguments.add(stringify!($param), $param);)*
                    let call = |real: *mut c_void, to: &OutParams| {
                        // SAFETY: `$take` passes a function with the row's signature.
                        let real = unsafe {
                            std::mem::transmute::<*mut c_void, extern "C-unwind" fn($(Arg<$role>),*) -> ResultCode>(real)
                        };
                        real($($param.redirected(to)),*)
                    };
                    $take(via, const { Function::$name }, arguments, call, || row::words(&[$(row::word($param)),*]))
                }
            )*
        }

        /// The hook of a function of a library.
        pub(super) fn hook(function: Function, via: usize) -> *mut c_void {
            known_hook(function, via).unwrap_or_else(|| hooks::hook(function, via))
        }

        /// The hook of a frequent function of a library; `None` for another function.
        fn known_hook(function: Function, via: usize) -> Option<*mut c_void> {
            match function {
                $(Function::$name => {
                    const HOOKS: Option<[unsafe extern "C-unwind" fn(); LIBRARIES]> = if $is_frequent(Function::$name) {
                        known_hooks!(@hooks $name, 0 1 2 3 4 5 6 7)
                    } else {
                        None
                    };
                    HOOKS.and_then(|hooks| hooks.get(via).copied()).map(|hook| hook as *mut c_void)
                })*
                _ => None,
            }
        }
    };
    (@hooks $name:ident, $($via:literal)*) => {
        Some([$(hook_of::$name::<$via>),*])
    };
}
pub(super) use known_hooks;
