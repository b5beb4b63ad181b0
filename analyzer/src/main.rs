//! The command `urscope`: runs a program under the witness, judges what it did, and says what a machine lacks.
//!
//! It stands at both ends of the rivers: [`run`] sets the stage before a program starts and hands its traces to the
//! judge afterwards, [`cli`] is the face of all of it, [`doctor`] looks at the machine, [`top`] shows a run in the terminal.
//! What can be known about a trace is known in the library; nothing of that may be decided here.

#![forbid(unsafe_code)]

mod cli;
mod doctor;
mod elf;
mod parts;
mod run;
mod top;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
