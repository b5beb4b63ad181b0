//! Patterns of suppressions, as LeakSanitizer has them: `*` is any text, `^` in front and `$` behind hold the pattern to the
//! start and the end. Without these it may stand anywhere.

/// A pattern, taken apart at its stars. It covers a whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    first: String,
    /// What stands between stars; none where there is no star.
    rest: Option<(Vec<String>, String)>,
}

impl Pattern {
    /// Of a text; every text is a pattern.
    pub(crate) fn of(text: &str) -> Self {
        let (held, text) = text.strip_prefix('^').map_or((false, text), |text| (true, text));
        let (ended, text) = text.strip_suffix('$').map_or((false, text), |text| (true, text));
        let whole = format!("{}{text}{}", if held { "" } else { "*" }, if ended { "" } else { "*" });
        Self::whole(&whole)
    }

    /// Of a text that is held to the start and the end.
    pub(crate) fn whole(text: &str) -> Self {
        let mut parts = text.split('*').map(str::to_owned);
        let first = parts.next().unwrap_or_default();
        let mut middle: Vec<String> = parts.collect();
        let rest = middle.pop().map(|last| (middle, last));
        Self { first, rest }
    }

    /// Whether it covers a text. Takes time in proportion to the text, whatever the pattern is.
    pub(crate) fn covers(&self, text: &str) -> bool {
        let Some((middle, last)) = &self.rest else { return text == self.first };
        let Some(mut left) = text.strip_prefix(self.first.as_str()) else { return false };
        for part in middle {
            let Some((_, behind)) = left.split_once(part.as_str()) else { return false };
            left = behind;
        }
        left.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_what_leak_sanitizers_would() {
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
            ("^€*ü$", &["€ü", "€xü"], &["€"]),
        ] {
            let read = Pattern::of(pattern);
            let covered =
                |texts: &[&'static str]| texts.iter().copied().filter(|text| read.covers(text)).collect::<Vec<_>>();
            assert_eq!((covered(yes), covered(no)), (yes.to_vec(), vec![]), "{pattern}");
        }
    }
}
