//! The binary `urscope`; everything that it does is in the library beside it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    urscope_command::main()
}
