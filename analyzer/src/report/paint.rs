//! Colours, line wrapping and times for text output.

use std::fmt;

use urscope_rules::Severity;

/// How text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    /// Whether it has colours.
    pub color: bool,
    /// The maximum width of lines that can be wrapped, in characters.
    pub width: usize,
    /// Whether all occurrences of a finding are listed, not only the first.
    pub all: bool,
    /// Whether call stacks are shown with the frames of the runtime, and to their ends.
    pub whole: bool,
}

/// The width of text that is not for a terminal, in characters.
pub const WIDTH: usize = 100;

impl From<bool> for Paint {
    /// The usual look, in colour or not.
    fn from(color: bool) -> Self {
        Self { color, width: WIDTH, all: false, whole: false }
    }
}

impl Paint {
    pub(crate) fn severity(self, severity: Severity, text: impl fmt::Display) -> String {
        let code = match severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
            Severity::Note => "1;36",
        };
        self.code(code, text)
    }

    pub(super) fn good(self, text: impl fmt::Display) -> String {
        self.code("1;32", text)
    }

    pub(crate) fn strong(self, text: impl fmt::Display) -> String {
        self.code("1", text)
    }

    /// What belongs to the other side.
    pub(super) fn other(self, text: impl fmt::Display) -> String {
        self.code("1;34", text)
    }

    pub(super) fn faint(self, text: impl fmt::Display) -> String {
        self.code("2", text)
    }

    fn code(self, code: &str, text: impl fmt::Display) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// Wraps text between words to lines of at most `width` characters, and indents all lines but the first. Longer words
/// are not split.
pub fn wrapped(text: &str, indent: &str, width: usize) -> String {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join(&format!("\n{indent}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_wrapped_between_words() {
        assert_eq!(wrapped("one two three", "  ", 7), "one two\n  three");
        assert_eq!(wrapped("unbreakable word", "  ", 4), "unbreakable\n  word");
    }
}
