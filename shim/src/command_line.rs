//! What a trace shows of the command line: the program and the number of words, unless `URSCOPE_COMMAND_LINE=full`
//! asks for all.
//!
//! Traces are passed on, and command lines contain secrets: after `--password`, but also in `-pSECRET`, in URLs, in
//! JSON and in scripts. No rule finds all of them, so nothing of the words is shown.

use crate::knobs::CommandLine;

/// Stands for a word that is not shown.
const HIDDEN: &str = "…";

/// The words of a command line as a trace shows them.
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
