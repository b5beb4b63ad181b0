//! The command line in a trace: the program and the number of words, or all with `URSCOPE_COMMAND_LINE=full`.
//!
//! Traces are passed on, and command lines contain secrets: after `--password`, but also in `-pSECRET`, in URLs, in
//! JSON and in scripts. No rule finds all of them, so no word is shown.

use crate::knobs::CommandLine;

/// Replaces a word that is not shown.
const HIDDEN: &str = "…";

/// The words of a command line in a trace.
pub(crate) fn shown(mut words: Vec<String>, how: CommandLine) -> Vec<String> {
    if how == CommandLine::Program {
        words.iter_mut().skip(1).for_each(|word| HIDDEN.clone_into(word));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_program_and_the_number_of_words_are_shown() {
        let words = || ["app", "-phunter2", "--header", "Authorization: Bearer x"].map(str::to_owned).to_vec();
        assert_eq!(shown(words(), CommandLine::Program), ["app", "…", "…", "…"]);
        assert_eq!(shown(words(), CommandLine::Full), words());
        assert!(shown(Vec::new(), CommandLine::Program).is_empty());
    }
}
