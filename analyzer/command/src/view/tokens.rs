//! The random words in paths that give access to the page.

use std::time::{Duration, Instant};
use std::{io, sync::Mutex};

const TICKET_LIFE: Duration = Duration::from_mins(1);

/// The words, 128 bits each in hexadecimal.
pub(super) struct AccessTokens {
    token: String,
    perfetto: Option<String>,
    ticket: Mutex<Option<Ticket>>,
}

/// A word that is valid once.
struct Ticket {
    word: String,
    place: &'static str,
    until: Instant,
}

/// What a word gives access to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Opens {
    Page,
    Perfetto,
    Elsewhere(String),
}

impl AccessTokens {
    pub(super) fn new(perfetto: bool) -> io::Result<Self> {
        let perfetto = if perfetto { Some(word()?) } else { None };
        Ok(Self { token: word()?, perfetto, ticket: Mutex::default() })
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn perfetto(&self) -> Option<&str> {
        self.perfetto.as_deref()
    }

    /// Creates a ticket. The previous one becomes invalid.
    pub(super) fn ticket(&self, place: &'static str) -> io::Result<String> {
        let word = word()?;
        let ticket = Ticket { word: word.clone(), place, until: Instant::now() + TICKET_LIFE };
        if let Ok(mut kept) = self.ticket.lock() {
            *kept = Some(ticket);
        }
        Ok(word)
    }

    /// Whether a word is the token of the page.
    pub(super) fn is_token(&self, word: &str) -> bool {
        same(word, &self.token)
    }

    /// What a word gives access to, if it is valid. A ticket is used up.
    pub(super) fn try_word(&self, word: &str) -> Option<Opens> {
        if self.is_token(word) {
            return Some(Opens::Page);
        }
        if self.perfetto.as_deref().is_some_and(|perfetto| same(word, perfetto)) {
            return Some(Opens::Perfetto);
        }
        let ticket = self.ticket.lock().ok()?.take_if(|ticket| same(word, &ticket.word))?;
        (Instant::now() < ticket.until).then(|| Opens::Elsewhere(format!("/{}/{}", self.token, ticket.place)))
    }
}

/// A random word.
pub(super) fn word() -> io::Result<String> {
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

    #[test]
    fn a_ticket_is_valid_once() {
        let tokens = AccessTokens::new(false).unwrap();
        let first = tokens.ticket("").unwrap();
        let second = tokens.ticket("perfetto.html").unwrap();
        assert_eq!(tokens.try_word(&first), None);
        assert_eq!(tokens.try_word(&second), Some(Opens::Elsewhere(format!("/{}/perfetto.html", tokens.token()))));
        assert_eq!(tokens.try_word(&second), None);
    }
}
