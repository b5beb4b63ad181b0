//! Suggestions for unknown names of rules.

use urscope_rules::catalog::RULES;

/// What to say of an unknown name: the rules whose names are similar to it, the best first and at most three, as part
/// of a message. Empty if there is none.
pub(crate) fn suggestion(name: &str) -> String {
    let near = nearest(name).join(", ");
    if near.is_empty() { near } else { format!(" (did you mean {near}?)") }
}

fn nearest(name: &str) -> Vec<&'static str> {
    let name: String = name.chars().take(LONGEST).collect::<String>().to_lowercase();
    let mut ranked: Vec<(f64, &str)> =
        RULES.iter().map(|rule| (strsim::jaro_winkler(&name, rule.code), rule.code)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    ranked.into_iter().filter(|(likeness, _)| *likeness > NEAR).take(3).map(|(_, code)| code).collect()
}

/// The Jaro-Winkler similarity above which a name is suggested.
const NEAR: f64 = 0.8;

/// The number of characters of a name that are compared.
const LONGEST: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_gets_a_suggestion() {
        assert_eq!(nearest("doubleput").first(), Some(&"double-put"));
        assert_eq!(nearest("leaked-handles").first(), Some(&"leaked-handle"));
        assert_eq!(nearest("FREED-WHILE-OPEN").first(), Some(&"freed-while-open"));
        assert_eq!(suggestion("double_putt"), " (did you mean double-put?)");
        for nothing in ["", "nonsense", "memory", "x"] {
            assert_eq!(suggestion(nothing), "", "{nothing}");
        }
    }
}
