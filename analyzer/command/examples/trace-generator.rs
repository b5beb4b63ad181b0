//! Writes synthetic traces of any size, with the generator of the tests in `tests/generator`.

use clap::Parser as _;

#[path = "../tests/generator/mod.rs"]
mod generator;

fn main() -> std::io::Result<()> {
    generator::Generator::parse().generate()
}
