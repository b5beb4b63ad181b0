//! Patterns of suppressions and wrappers, with the syntax of LeakSanitizer: `*` matches any text, a leading `^` and a
//! trailing `$` anchor the pattern at the start and the end. An unanchored pattern matches anywhere. `\*` is a star of
//! the text.

/// A pattern, split at its stars. It matches a whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    first: String,
    /// The parts between stars, and the part after the last one; `None` without a star.
    rest: Option<(Vec<String>, String)>,
}

impl Pattern {
    /// Parses a pattern. Every text is a valid pattern.
    pub(crate) fn parse(text: &str) -> Self {
        let (at_start, text) = text.strip_prefix('^').map_or((false, text), |text| (true, text));
        let (at_end, text) = text.strip_suffix('$').map_or((false, text), |text| (true, text));
        let whole = format!("{}{text}{}", if at_start { "" } else { "*" }, if at_end { "" } else { "*" });
        Self::whole(&whole)
    }

    /// Parses a pattern that is anchored at both ends.
    pub(crate) fn whole(text: &str) -> Self {
        // A text that is compared has no control characters.
        let text = text.replace("\\*", "\0");
        let mut parts = text.split('*').map(|part| part.replace('\0', "*"));
        let first = parts.next().unwrap_or_default();
        let mut middle: Vec<String> = parts.collect();
        let rest = middle.pop().map(|last| (middle, last));
        Self { first, rest }
    }

    /// Whether the pattern matches a text. Takes time linear in the length of the text for every pattern.
    pub(crate) fn covers(&self, text: &str) -> bool {
        let Some((middle, last)) = &self.rest else { return text == self.first };
        let Some(mut left) = text.strip_prefix(self.first.as_str()) else { return false };
        for part in middle {
            let Some((_, after)) = left.split_once(part.as_str()) else { return false };
            left = after;
        }
        left.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_as_in_leak_sanitizer() {
        for (pattern, yes, no) in [
            ("free", &["free", "ze::free(void*)"][..], &["fre"][..]),
            ("^free", &["free", "freed"], &["my_free"]),
            ("free$", &["free", "my_free"], &["freed"]),
            ("^free$", &["free"], &["freed", "my_free"]),
            ("^a*b$", &["ab", "a-b", "abab"], &["abc", "ba", "a"]),
            ("a*b*c", &["xaybzc.", "abc"], &["acb"]),
            ("^aba*aba$", &["abaaba"], &["aba"]),
            ("*", &["", "x"], &[]),
            ("^$", &[""], &["x"]),
            ("a$b", &["a$b"], &["ab"]),
            ("^f(int*)$", &["f(int*)", "f(int const*)"], &["f(long*)"]),
            ("^f(int\\*)$", &["f(int*)"], &["f(int const*)", "f(int)"]),
            ("^€*ü$", &["€ü", "€xü"], &["€"]),
        ] {
            let read = Pattern::parse(pattern);
            let covered =
                |texts: &[&'static str]| texts.iter().copied().filter(|text| read.covers(text)).collect::<Vec<_>>();
            assert_eq!((covered(yes), covered(no)), (yes.to_vec(), vec![]), "{pattern}");
        }
    }
}
