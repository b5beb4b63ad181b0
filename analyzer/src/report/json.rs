//! JSON that is safe to print: characters that could control a terminal are escaped. Parsers restore them.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use serde::Serialize;

use crate::plain::is_unprintable;

/// Writes indented JSON.
pub(super) fn write(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    let mut text = escaped(serde_json::to_string_pretty(value)?);
    text.push('\n');
    out.write_all(text.as_bytes())
}

/// JSON on one line.
pub(super) fn compact(value: &impl Serialize) -> io::Result<Vec<u8>> {
    Ok(escaped(serde_json::to_string(value)?).into_bytes())
}

fn escaped(written: String) -> String {
    // Outside of strings the only such characters are line ends. In strings, serde_json has escaped those below U+0020.
    if written.is_ascii() && !written.contains('\u{7f}') {
        return written;
    }
    let mut text = String::with_capacity(written.len());
    for c in written.chars() {
        if c != '\n' && is_unprintable(c) {
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text
}
