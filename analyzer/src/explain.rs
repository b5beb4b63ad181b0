//! What the rules say of themselves: the list of them, the page of one, and the nearest names to one that is none.
//!
//! The text is the catalogue's own ([`urscope_rules::catalog`]), from which `docs/rules.md` is made as well. Nothing may be
//! added to it here.

use std::fmt::Write as _;

use urscope_rule_pages::Page;
use urscope_rules::{Rule, catalog::RULES};

/// A name that no rule has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no rule is named {:?}; did you mean {}? `urscope explain` lists all",
    crate::plain::plain(name),
    nearest(name).join(", ")
)]
pub struct UnknownRule {
    /// The name.
    pub name: String,
}

/// All rules, a line each: the name, how bad it is, what was done.
pub fn list() -> String {
    let width = RULES.iter().map(|rule| rule.code.len()).max().unwrap_or_default();
    RULES.iter().fold(String::new(), |mut text, rule| {
        let _ = writeln!(text, "{:<width$}  {:<7}  {}", rule.code, rule.severity, rule.title);
        text
    })
}

/// The page of a rule, in Markdown.
pub fn page(name: &str) -> Result<String, UnknownRule> {
    let rule = Rule::named(name).ok_or_else(|| UnknownRule { name: name.to_owned() })?;
    Ok(format!("{} ({}): {}\n\n{}\n", rule.code, rule.severity, rule.title, Page::of(rule).text.trim_end()))
}

/// The names of the rules that are nearest to a word, the nearest first: at most three, and no less than one.
pub fn nearest(name: &str) -> Vec<&'static str> {
    let name: String = name.chars().take(LONGEST).collect::<String>().to_lowercase();
    let mut ranked: Vec<(f64, &str)> =
        RULES.iter().map(|rule| (strsim::jaro_winkler(&name, rule.code), rule.code)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near = ranked.iter().filter(|(likeness, _)| *likeness > NEAR).count().clamp(1, 3);
    ranked.into_iter().take(near).map(|(_, code)| code).collect()
}

/// From which likeness on a name may be what was meant.
const NEAR: f64 = 0.8;

/// More of a word is not compared.
const LONGEST: usize = 100;

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
                assert!(page.contains(&format!("\n# {heading}\n")), "{page}");
            }
        }
    }

    #[test]
    fn a_slip_is_told_what_was_meant() {
        assert_eq!(nearest("doubleput").first(), Some(&"double-put"));
        assert_eq!(nearest("leaked-handles").first(), Some(&"leaked-handle"));
        assert_eq!(nearest("FREED-WHILE-OPEN").first(), Some(&"freed-while-open"));
        assert_eq!(nearest("").len(), 1);
        let said = page("dubble-close\x1b[2J").unwrap_err().to_string();
        assert!(said.contains("double-close") && !said.contains('\x1b'), "{said}");
    }
}
