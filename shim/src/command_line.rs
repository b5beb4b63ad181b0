//! What a trace shows of the command line: nothing that looks like a secret, unless `URSCOPE_COMMAND_LINE` asks for it.
//!
//! Traces are passed on, and command lines contain passwords. What is a secret can only be guessed by the name before a value.

use crate::knobs::CommandLine;

/// Stands for a value that is not shown.
const REDACTED: &str = "…";

/// Words that make a name that of a secret, in lower case and without separators.
const SECRETS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "token",
    "secret",
    "credential",
    "apikey",
    "accesskey",
    "authorization",
];

/// The words of a command line as a trace shows them.
pub(crate) fn shown(words: Vec<String>, how: CommandLine) -> Vec<String> {
    match how {
        CommandLine::Full => words,
        CommandLine::Program => words.into_iter().take(1).collect(),
        CommandLine::Redacted => redacted(&words),
    }
}

fn redacted(words: &[String]) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    let mut is_value = false;
    for word in words {
        // `--password VALUE`
        let hide = is_value && !word.starts_with('-');
        shown.push(if hide { REDACTED.into() } else { word_of(word) });
        is_value = word.starts_with('-') && !word.contains('=') && is_secret(word);
    }
    shown
}

/// One argument. It may be a whole script, so each of its parts between spaces counts.
fn word_of(word: &str) -> String {
    let mut shown = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        let space = behind.len() - behind.trim_start().len();
        let (space, behind) = behind.split_at(space);
        match part.split_once('=') {
            Some((name, value)) if is_secret(name) => {
                shown.extend([name, "=", REDACTED]);
                // The end of a quoted value is not known for certain.
                if value.starts_with(['"', '\'', '$', '`']) {
                    return shown;
                }
            }
            _ => shown.push_str(&without_password(part)),
        }
        shown.push_str(space);
        rest = behind;
    }
    shown
}

/// A part with `scheme://user:password@host` in it, without the password.
fn without_password(part: &str) -> String {
    let hidden = || {
        let (scheme, rest) = part.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let (user, password) = authority.rsplit_once('@')?.0.split_once(':')?;
        let behind = rest.get(user.len() + 1 + password.len()..)?;
        Some(format!("{scheme}://{user}:{REDACTED}{behind}"))
    };
    hidden().unwrap_or_else(|| part.to_owned())
}

/// Whether a name is that of a secret: one of [`SECRETS`], or a name like `AWS_KEY`.
fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let letters: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
    SECRETS.iter().any(|secret| letters.contains(secret)) || lower.ends_with("_key") || lower.ends_with("-key")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_of(words: &[&str], how: CommandLine) -> Vec<String> {
        shown(words.iter().map(|word| (*word).to_owned()).collect(), how)
    }

    #[test]
    fn values_of_secrets_are_hidden() {
        for (word, expected) in [
            ("--password=hunter2", "--password=…"),
            ("--api-key=1", "--api-key=…"),
            ("AWS_SECRET_ACCESS_KEY=abc", "AWS_SECRET_ACCESS_KEY=…"),
            ("SIGNING_KEY=abc", "SIGNING_KEY=…"),
            ("A=1 DB_PASSWORD=x ./run --fast", "A=1 DB_PASSWORD=… ./run --fast"),
            ("DB_PASSWORD='a b' ./run", "DB_PASSWORD=…"),
            ("https://me:pw@host/a?b#c", "https://me:…@host/a?b#c"),
            ("https://host/a:b@c", "https://host/a:b@c"),
            ("--monkey=1", "--monkey=1"),
            ("--size=8", "--size=8"),
        ] {
            assert_eq!(shown_of(&[word], CommandLine::Redacted), [expected]);
        }
        assert_eq!(
            shown_of(&["app", "--token", "abc", "--password", "--verbose", "file"], CommandLine::Redacted),
            ["app", "--token", "…", "--password", "--verbose", "file"]
        );
    }

    #[test]
    fn all_or_nothing_can_be_asked_for() {
        let words = ["app", "--password=x"];
        assert_eq!(shown_of(&words, CommandLine::Full), words);
        assert_eq!(shown_of(&words, CommandLine::Program), ["app"]);
    }
}
