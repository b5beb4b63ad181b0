//! JSON that is safe to print: characters that could control a terminal are escaped. Parsers restore them.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

use serde::Serialize;

use crate::plain::is_unprintable;

/// Writes indented JSON, piece by piece: the judgement of a large run has many megabytes.
pub(super) fn write(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    serde_json::to_writer_pretty(Escaping(&mut out), value)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// JSON on one line.
pub(super) fn compact(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    serde_json::to_writer(Escaping(&mut text), value)?;
    Ok(text)
}

/// Writes JSON with such characters escaped. Outside of strings the only ones are line ends. In strings, serde_json has
/// escaped those below U+0020.
struct Escaping<W>(W);

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        if written.iter().all(|byte| byte.is_ascii() && *byte != 0x7f) {
            self.0.write_all(written)?;
            return Ok(written.len());
        }
        // A character whose last bytes are still to come waits for them.
        let whole = written.utf8_chunks().next().map(|chunk| chunk.valid()).filter(|valid| !valid.is_empty());
        let Some(whole) = whole else { return Err(io::ErrorKind::InvalidData.into()) };
        let mut text = String::with_capacity(whole.len());
        for c in whole.chars() {
            if c != '\n' && is_unprintable(c) {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            } else {
                text.push(c);
            }
        }
        self.0.write_all(text.as_bytes())?;
        Ok(whole.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unprintable_characters_are_escaped() {
        let texts = ["naïve \u{202e}", "a\u{7f}b", "\n\u{1b}[1m\"", "plain"];
        let mut indented = Vec::new();
        write(&texts, &mut indented).unwrap();
        let indented = String::from_utf8(indented).unwrap();
        let lines =
            [r#""naïve \u202e""#, r#""a\u007fb""#, r#""\n\u001b[1m\"""#, r#""plain""#].map(|line| format!("  {line}"));
        assert_eq!(indented, format!("[\n{}\n]\n", lines.join(",\n")));
        let compact = String::from_utf8(compact(&texts).unwrap()).unwrap();
        assert_eq!(compact, indented.replace("\n  ", "").replace('\n', ""));
        assert_eq!(serde_json::from_str::<Vec<String>>(&indented).unwrap(), texts);
    }
}
