//! The command `urscope`.

fn main() {}
