//! The documentation of the rules: the list, the page of each rule in Markdown or for a terminal, and suggestions for
//! unknown names.
//!
//! The text comes from the catalogue ([`urscope_rules::catalog`]), from which `docs/rules.md` is generated as well.
//! This module must not add to it.

mod terminal;

use std::fmt::Write as _;

use urscope_rule_pages::Page;
use urscope_rules::{Rule, catalog::RULES};

use crate::nearest::suggestion;
use crate::report::{Paint, wrapped};

/// The error for a name that no rule has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no rule is named {:?}{}; `urscope explain` lists all", crate::plain::plain(name), suggestion(name))]
pub struct UnknownRule {
    /// The name.
    pub name: String,
}

/// All rules, one per line: the name, the severity and the title.
pub fn list() -> String {
    let width = RULES.iter().map(|rule| rule.code.len()).max().unwrap_or_default();
    RULES.iter().fold(String::new(), |mut text, rule| {
        let _ = writeln!(text, "{:<width$}  {:<7}  {}", rule.code, rule.severity, rule.title);
        text
    })
}

/// The page of a rule, in Markdown. In the name, `_` is the same as `-`. The error names similar rules.
pub fn page(name: &str) -> Result<String, UnknownRule> {
    let rule = named(name)?;
    Ok(format!("{} ({}): {}\n\n{}\n", rule.code, rule.severity, rule.title, with_given(rule)))
}

/// The page of a rule for a terminal: wrapped to its width, with headings and code marked in colour if it has colours,
/// and the wrong code of the example beside the fixed one if both fit. The error names similar rules.
pub fn rendered(name: &str, paint: Paint) -> Result<String, UnknownRule> {
    let rule = named(name)?;
    let severity = rule.severity.to_string();
    let title = wrapped(&format!("{} ({severity}): {}", rule.code, rule.title), "  ", paint.width);
    let title = title.replacen(&severity, &paint.severity(rule.severity, &severity), 1);
    Ok(format!("{title}\n{}", terminal::rendered(&with_given(rule), paint)))
}

/// The rule with a name, in which `_` is the same as `-`.
fn named(name: &str) -> Result<&'static Rule, UnknownRule> {
    Rule::named(&name.replace('_', "-")).ok_or_else(|| UnknownRule { name: name.to_owned() })
}

/// The text of a rule's page, with what its code takes as given below it.
fn with_given(rule: &Rule) -> String {
    let page = Page::for_rule(rule);
    let text = page.explained();
    match (page.example(), page.section("Example")) {
        (Some(("cpp", _)), Some(example)) => text.replacen(example, &format!("{example}\n\n{}", Page::GIVEN), 1),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_listed_and_has_a_page_with_all_its_headings() {
        let list = list();
        assert_eq!(list.lines().count(), RULES.len());
        for rule in RULES {
            assert!(list.contains(&format!("{} ", rule.code)) && list.contains(rule.title), "{list}");
            let page = page(rule.code).unwrap();
            assert!(page.starts_with(&format!("{} ({}): ", rule.code, rule.severity)), "{page}");
            for heading in Page::HEADINGS {
                assert_eq!(page.contains(&format!("\n# {heading}\n")), !heading.ends_with("trace"), "{page}");
            }
        }
    }

    #[test]
    fn a_misspelled_name_gets_a_suggestion() {
        let message = page("dubble-close\x1b[2J").unwrap_err().to_string();
        assert!(message.contains("double-close") && !message.contains('\x1b'), "{message}");
    }
}
