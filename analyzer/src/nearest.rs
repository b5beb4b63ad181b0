//! Suggestions for unknown names of rules.

use urscope_rules::catalog::RULES;

/// The rule names that are most similar to `name`, the best first: at least one and at most three.
pub(crate) fn nearest(name: &str) -> Vec<&'static str> {
    let name: String = name.chars().take(LONGEST).collect::<String>().to_lowercase();
    let mut ranked: Vec<(f64, &str)> =
        RULES.iter().map(|rule| (strsim::jaro_winkler(&name, rule.code), rule.code)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near = ranked.iter().filter(|(likeness, _)| *likeness > NEAR).count().clamp(1, 3);
    ranked.into_iter().take(near).map(|(_, code)| code).collect()
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
        assert_eq!(nearest("").len(), 1);
    }
}
