//! Writes the traces of a run that never was, of any size: what `tests/generator` does for the tests, as a command.

use clap::Parser as _;

#[path = "../tests/generator/mod.rs"]
mod generator;

fn main() -> std::io::Result<()> {
    generator::Generator::parse().generate()
}
