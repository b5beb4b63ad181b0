//! A rule's documentation: the head of its file, and all of them as one document.

use std::fmt::Write as _;

use urscope_rules::{Rule, Severity, catalog::RULES};

/// The heads of all files in the catalogue, by their names.
const HEADS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/heads.rs"));

/// The parts of a page that `docs/rules.md` leaves to `urscope explain`.
const ONLY_EXPLAINED: [&str; 4] = ["Why it is bad", "Example", "Bad trace", "Good trace"];

/// The documentation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its text in Markdown.
    pub text: String,
}

impl Page {
    /// The headings of every page, in order.
    pub const HEADINGS: [&'static str; 6] =
        ["What it does", "Why it is bad", "Example", "Bad trace", "Good trace", "What to do"];

    /// The headings of the traces.
    const TRACES: [&'static str; 2] = ["Bad trace", "Good trace"];

    /// What the code in the examples takes as given, as a paragraph of Markdown. `tests/apps/examples.hpp` declares it.
    pub const GIVEN: &'static str = "In the code, `ipc` is `sycl::ext::oneapi::experimental::ipc`, and `queue`, `ctx` and `dev` are those of the process.\n\
        `send` and `receive` pass handle data between the two processes, and `barrier` waits until the other one has done its part.";

    /// The page of a rule; empty for a rule that is not of the catalogue.
    pub fn for_rule(rule: &Rule) -> Self {
        let name = rule.code.replace('-', "_");
        let head = HEADS.iter().find(|(file, _)| *file == name).map_or("", |(_, head)| head);
        Self { text: head.trim_end().to_owned() }
    }

    /// The text without the traces, which are for the tests of the rule.
    pub fn explained(&self) -> String {
        let parts = self.text.split("\n# ");
        let is_for_people = |part: &&str| !Self::TRACES.iter().any(|heading| part.starts_with(heading));
        parts.filter(is_for_people).collect::<Vec<_>>().join("\n# ").trim_end().to_owned()
    }

    /// What stands under a heading.
    pub fn section(&self, heading: &str) -> Option<&str> {
        let (_, rest) = self.text.split_once(&format!("# {heading}\n"))?;
        Some(rest.split("\n# ").next().unwrap_or(rest).trim())
    }

    /// The wrong and the fixed code of the example, with the language of both: `cpp` or `sh`. `None` if it has no code.
    pub fn example(&self) -> Option<(&str, [&str; 2])> {
        let mut parts = self.section("Example")?.split("```");
        let wrong = parts.nth(1)?;
        let fixed = parts.nth(1)?;
        let (language, wrong) = wrong.split_once('\n')?;
        Some((language, [wrong, fixed.split_once('\n')?.1]))
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
         Made from the heads of the rules' files in `rules/src/catalog`; `BLESS=1 cargo test -p urscope-rule-pages` renews it.\n\
         `urscope explain RULE` also says why it is bad and when it is less severe, and shows an example, wrong and fixed.\n\n\
         | rule | severity | reports at | violation |\n|---|---|---|---|\n",
    );
    for rule in RULES {
        let when = format!("{:?}", rule.when).to_lowercase();
        let _ = writeln!(text, "| [`{0}`](#{0}) | {1} | {when} | {2} |", rule.code, rule.severity, rule.title);
    }
    text.push_str(
        "\n## Level Zero and CUDA\n\n\
         The rules hold for memory that is shared by the functions of Level Zero and of CUDA, too. They ask for less;\n\
         where that makes a difference, the rule says so.\n",
    );
    for rule in RULES {
        let page = Page::for_rule(rule).text;
        let _ = writeln!(text, "\n## {}\n", rule.code);
        let mut is_left_out = false;
        let mut is_behind_heading = false;
        for line in page.lines() {
            if let Some(heading) = line.strip_prefix("# ") {
                is_left_out = ONLY_EXPLAINED.contains(&heading);
            }
            if is_left_out {
                continue;
            }
            match line.strip_prefix("# ") {
                Some("What it does") => is_behind_heading = true,
                Some(heading) => {
                    let _ = write!(text, "**{heading}:** ");
                    is_behind_heading = true;
                }
                None if is_behind_heading && line.is_empty() => {}
                None => {
                    is_behind_heading = false;
                    let _ = writeln!(text, "{line}");
                }
            }
        }
    }
    text
}

/// The sentence in `README.md` that counts the rules.
pub fn rules_counted() -> String {
    let [notes, warnings, errors] =
        Severity::ALL.map(|severity| RULES.iter().filter(|rule| rule.severity == severity).count());
    format!(
        "There are [{} rules](docs/rules.md): {errors} find errors, {warnings} warnings, and {notes} what is worth a note.\n",
        RULES.len()
    )
}
