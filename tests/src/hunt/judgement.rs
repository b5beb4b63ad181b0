//! Compares what is found in a program with what must be found.

use std::fmt;

use super::expectation::{EXPECTED, Expectation, There};
use super::program::Program;

/// A finding as it is compared.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its severity and rule.
    pub text: String,
    /// The line of the scenario at which it is.
    pub here: Option<usize>,
    /// The line of its other location.
    pub there: Option<usize>,
}

impl Program {
    /// What was found wrongly, and what was missed; none if nothing.
    pub fn differences(&self, found: &[Finding]) -> Option<String> {
        let mut missed: Vec<&Expectation> = self.expected.iter().collect();
        let is_wrong = |finding: &&Finding| match missed.iter().position(|expected| finding.is(expected)) {
            Some(index) => {
                missed.remove(index);
                false
            }
            None => true,
        };
        let wrong: Vec<&Finding> = found.iter().filter(is_wrong).collect();
        missed.retain(|expected| !expected.optional);
        let missed = missed.iter().map(|expected| format!("missed: {expected}\n"));
        let text: String = missed.chain(wrong.iter().map(|finding| format!("wrong: {finding}\n"))).collect();
        (!text.is_empty()).then_some(text)
    }

    /// The script, and what must be found.
    pub fn text(&self) -> String {
        if self.script.contains(EXPECTED) {
            return self.script.clone();
        }
        let expected: Vec<String> = self.expected.iter().map(|it| format!("{EXPECTED}{it}\n")).collect();
        self.script.clone() + &expected.concat()
    }
}

impl Finding {
    fn is(&self, expected: &Expectation) -> bool {
        let there = match &expected.there {
            There::Nowhere => self.there.is_none(),
            There::OneOf(lines) => self.there.is_some_and(|line| lines.contains(&line)),
            There::Anywhere => self.there.is_some(),
        };
        let here = self.here.map_or(expected.here.is_empty(), |line| expected.here.contains(&line));
        self.text == expected.finding && here && there
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |line: Option<usize>| line.map_or("no line".to_owned(), |line| format!("line {line}"));
        write!(f, "{} at {}, other location {}", self.text, place(self.here), place(self.there))
    }
}
