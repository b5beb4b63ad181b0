//! Makes the text of a trace safe to print: replaces characters that control a terminal or change the direction of
//! text.
//!
//! A trace comes from a program under test. Names of executables, threads, functions and files are not trusted.

use std::io::{self, Write};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::ser::{CharEscape, Formatter, Serializer};

/// Whether a character must not be printed: it controls a terminal, changes the direction of text (UAX #9), ends a
/// line, or is a noncharacter, which XML forbids.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// The text, with U+FFFD in place of each unprintable character.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if is_unprintable(c) { '\u{fffd}' } else { c }).collect()
}

/// A copy of a value with [`plain`] applied to all of its texts. `None` if the value cannot be converted to JSON and
/// back.
pub fn plain_all<T: Serialize + DeserializeOwned>(value: &T) -> Option<T> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Plain)).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Writes JSON whose strings are plain text.
struct Plain;

impl Formatter for Plain {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        if fragment.contains(is_unprintable) {
            out.write_all(plain(fragment).as_bytes())
        } else {
            out.write_all(fragment.as_bytes())
        }
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, out: &mut W, escape: CharEscape) -> io::Result<()> {
        out.write_all(match escape {
            CharEscape::Quote => b"\\\"",
            CharEscape::ReverseSolidus => b"\\\\",
            CharEscape::Solidus => b"\\/",
            // All others are control characters.
            _ => "\u{fffd}".as_bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_direction_characters_are_replaced() {
        assert_eq!(plain("a\x1b[2Jb\u{202e}c\nd\u{9b}"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d\u{fffd}");
        assert_eq!(plain("naïve 名前 🙂"), "naïve 名前 🙂");
    }

    #[test]
    fn every_text_of_a_value_is_made_plain() {
        let value = serde_json::json!({"a\n": ["b\x07", {"c": "\u{2066}"}], "d": 1, "\"": "\\ / \t"});
        let expected =
            serde_json::json!({"a\u{fffd}": ["b\u{fffd}", {"c": "\u{fffd}"}], "d": 1, "\"": "\\ / \u{fffd}"});
        assert_eq!(plain_all(&value), Some(expected));
    }
}
