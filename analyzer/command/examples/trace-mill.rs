//! Writes the traces of a run that never was, of any size: what `tests/mill` does for the tests, as a command.

use clap::Parser as _;

#[path = "../tests/mill/mod.rs"]
mod mill;

fn main() -> std::io::Result<()> {
    mill::Mill::parse().grind()
}
