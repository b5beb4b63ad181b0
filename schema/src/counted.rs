//! Counts with their nouns, for the texts of all crates.

/// A count with its noun in the singular or plural: `1 process`, `2 processes`, `2 handles`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        count if noun.ends_with('s') => format!("{count} {noun}es"),
        count => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn a_noun_follows_its_count() {
        assert_eq!(counted(0_usize, "handle"), "0 handles");
        assert_eq!(counted(1_u64, "process"), "1 process");
        assert_eq!(counted(7_usize, "process"), "7 processes");
    }
}
