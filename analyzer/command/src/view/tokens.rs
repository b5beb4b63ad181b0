//! The random words in paths that give access to the page.

use std::io;

/// The words, 128 bits each in hexadecimal.
pub(super) struct AccessTokens {
    token: String,
    perfetto: Option<String>,
}

/// What a word gives access to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opens {
    Page,
    Perfetto,
}

impl AccessTokens {
    pub(super) fn new(perfetto: bool) -> io::Result<Self> {
        let perfetto = if perfetto { Some(word()?) } else { None };
        Ok(Self { token: word()?, perfetto })
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn perfetto(&self) -> Option<&str> {
        self.perfetto.as_deref()
    }

    /// What a word gives access to, if it is valid.
    pub(super) fn try_word(&self, word: &str) -> Option<Opens> {
        if same(word, &self.token) {
            return Some(Opens::Page);
        }
        self.perfetto.as_deref().is_some_and(|perfetto| same(word, perfetto)).then_some(Opens::Perfetto)
    }
}

/// A random word, which nobody can guess.
pub(crate) fn word() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// Compares two words in constant time, so that the time does not reveal how much of them is equal.
fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_gives_access_to_its_own_part() {
        let tokens = AccessTokens::new(true).unwrap();
        assert_eq!(tokens.token().len(), 32);
        assert_eq!(tokens.try_word(tokens.token()), Some(Opens::Page));
        assert_eq!(tokens.try_word(tokens.perfetto().unwrap()), Some(Opens::Perfetto));
        for wrong in ["", "0", &tokens.token()[1..], &tokens.token().to_uppercase().replace(char::is_numeric, "x")] {
            assert_eq!(tokens.try_word(wrong), None, "{wrong}");
        }
        assert_ne!(AccessTokens::new(false).unwrap().token(), tokens.token());
    }
}
