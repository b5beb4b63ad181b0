//! The binary `urscope`. Its code is in the library of this crate.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    urscope_command::main()
}
