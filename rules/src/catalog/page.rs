//! A rule's documentation: the head of its file, and all of them as one document.

use std::fmt::Write as _;

use super::RULES;

/// The documentation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its text in Markdown.
    pub text: String,
}

impl Page {
    /// The headings of every page, in order.
    pub const HEADINGS: [&'static str; 5] = ["What it does", "Why it is bad", "Bad trace", "Good trace", "What to do"];

    pub(super) fn of(source: &str) -> Self {
        let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
        let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        Self { text: lines.join("\n") }
    }

    /// What stands under a heading.
    pub fn section(&self, heading: &str) -> Option<&str> {
        let (_, rest) = self.text.split_once(&format!("# {heading}\n"))?;
        Some(rest.split("\n# ").next().unwrap_or(rest).trim())
    }

    /// The trace under a heading.
    pub fn scenario(&self, heading: &str) -> Option<&str> {
        let (_, rest) = self.section(heading)?.split_once("```text\n")?;
        rest.split_once("```").map(|(scenario, _)| scenario)
    }
}

/// The text of `docs/rules.md`.
pub fn rules_md() -> String {
    let mut text = String::from(
        "# The rules of urscope\n\n\
         Made from the heads of `rules/src/catalog/*.rs`; `BLESS=1 cargo test -p urscope-rules` renews it. The traces are\n\
         scenarios: the test suite plays each of them, and the bad one yields its rule, the good one nothing\n\
         (`rules/src/scenario.rs` has the language).\n\n\
         | rule | severity | looks at | the violation |\n|---|---|---|---|\n",
    );
    for rule in RULES {
        let when = format!("{:?}", rule.when).to_lowercase();
        let _ = writeln!(text, "| [`{0}`](#{0}) | {1} | {when} | {2} |", rule.code, rule.severity, rule.title);
    }
    for rule in RULES {
        let page = rule.page().text;
        let _ = writeln!(text, "\n## {}\n", rule.code);
        for line in page.lines() {
            let deeper = if line.starts_with("# ") { "##" } else { "" };
            let _ = writeln!(text, "{deeper}{line}");
        }
    }
    text
}
