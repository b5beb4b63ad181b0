//! JSON that is safe to print: what would steer a terminal is said by its number, and reads back as what it was.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use serde::Serialize;

use crate::plain::steers;

pub(super) fn write(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    let written = serde_json::to_string_pretty(value)?;
    let mut text = String::with_capacity(written.len() + 1);
    // Outside of strings there is nothing of the kind but the ends of lines.
    for c in written.chars() {
        if c != '\n' && steers(c) {
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text.push('\n');
    out.write_all(text.as_bytes())
}
