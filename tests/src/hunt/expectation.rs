//! A finding that a program must yield, and its form in a script.

use std::fmt;

/// What a line of a script with an expectation begins with.
pub(super) const EXPECTED: &str = "# expected: ";

/// A finding that the program must yield, with the steps of its two locations, or their lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expectation<Step = usize> {
    /// As "severity rule".
    pub(super) finding: String,
    /// One of these; empty if the finding is at no call.
    pub(super) here: Vec<Step>,
    pub(super) there: There<Step>,
    /// It may be missing: it is true, but depends on more than the script shows.
    pub(super) optional: bool,
}

/// The other location of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum There<Step = usize> {
    /// It has none.
    Nowhere,
    /// One of these, because it is about bytes that equal gets returned.
    OneOf(Vec<Step>),
    /// Any: it is an example.
    Anywhere,
}

const NOWHERE: &str = "no line";
const LINE: &str = "line ";
const ANYWHERE: &str = "any";
const OPTIONAL: &str = " (may be missing)";

impl<Step: Copy> Expectation<Step> {
    /// This expectation, with lines in place of steps.
    pub(super) fn at_lines(&self, line: impl Fn(Step) -> Option<usize>) -> Expectation {
        let lines = |steps: &[Step]| steps.iter().filter_map(|step| line(*step)).collect();
        let there = match &self.there {
            There::Nowhere => There::Nowhere,
            There::OneOf(steps) => There::OneOf(lines(steps)),
            There::Anywhere => There::Anywhere,
        };
        Expectation { finding: self.finding.clone(), here: lines(&self.here), there, optional: self.optional }
    }
}

impl Expectation {
    /// The expectation in a line of a script, if there is one.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let text = line.strip_prefix(EXPECTED)?;
        let (text, optional) = text.strip_suffix(OPTIONAL).map_or((text, false), |text| (text, true));
        let (finding, places) = text.split_once(" at ").unwrap_or_else(|| panic!("no location in {line:?}"));
        let (here, there) =
            places.split_once(", other location ").unwrap_or_else(|| panic!("one location in {line:?}"));
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("no line in {line:?}"));
        let list = |text: &str| -> Vec<usize> { text.trim_start_matches(LINE).split(" or ").map(number).collect() };
        let there = match there {
            NOWHERE => There::Nowhere,
            ANYWHERE => There::Anywhere,
            lines => There::OneOf(list(lines)),
        };
        let here = if here == NOWHERE { Vec::new() } else { list(here) };
        Some(Self { finding: finding.to_owned(), here, there, optional })
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |lines: &[usize]| format!("{LINE}{}", lines.iter().map(usize::to_string).collect::<Vec<_>>().join(" or "));
        let here = if self.here.is_empty() { NOWHERE.to_owned() } else { list(&self.here) };
        let there = match &self.there {
            There::Nowhere => NOWHERE.to_owned(),
            There::OneOf(lines) => list(lines),
            There::Anywhere => ANYWHERE.to_owned(),
        };
        let optional = if self.optional { OPTIONAL } else { "" };
        write!(f, "{} at {here}, other location {there}{optional}", self.finding)
    }
}
