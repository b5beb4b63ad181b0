//! JSON that is safe to print: what would steer a terminal is said by its number, and reads back as what it was.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use serde::Serialize;

use crate::plain::steers;

/// On lines of its own for each field.
pub(super) fn write(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    let mut text = escaped(serde_json::to_string_pretty(value)?);
    text.push('\n');
    out.write_all(text.as_bytes())
}

/// All on one line.
pub(super) fn compact(value: &impl Serialize) -> io::Result<Vec<u8>> {
    Ok(escaped(serde_json::to_string(value)?).into_bytes())
}

fn escaped(written: String) -> String {
    // Outside of strings there is nothing of the kind but the ends of lines, and in strings JSON allows no control below.
    if written.is_ascii() && !written.contains('\u{7f}') {
        return written;
    }
    let mut text = String::with_capacity(written.len());
    for c in written.chars() {
        if c != '\n' && steers(c) {
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text
}
