//! Messages on stderr: one line at a time, bypassing all buffers of the program. Must never fail.

use std::fmt::Write as _;

/// Writes `urscope: TEXT` as one line. Errors are ignored.
///
/// The text may contain names from the environment and from files: what would control a terminal or end the line is escaped.
pub fn say(text: &str) {
    let line = line(text);
    // SAFETY: the length is that of the buffer; write(2) only reads it.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

fn line(text: &str) -> String {
    let mut line = String::with_capacity(text.len() + 16);
    line.push_str("urscope: ");
    for c in text.chars() {
        if is_unprintable(c) {
            let _ = write!(line, "{}", c.escape_unicode());
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    line
}

/// Whether a character controls a terminal, ends a line, or changes the direction of text (UAX #9).
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_and_controls_no_terminal() {
        assert_eq!(line("a\x1b[2J\nb\u{202e}é"), "urscope: a\\u{1b}[2J\\u{a}b\\u{202e}é\n");
    }
}
