//! The counts that the repository keeps, by profile of cargo.

use std::{fs, path::PathBuf};

use serde_json::{Map, Value, json};

use super::{Added, Counted, Way};
use crate::repository;

/// By how many percent a count may differ from the one that is kept.
pub const TOLERANCE: u64 = 5;

/// The command that renews the counts.
const RENEW: &str = "scripts/bench instructions --keep";

/// The kept counts of all profiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedCounts(Map<String, Value>);

impl RecordedCounts {
    fn path() -> PathBuf {
        repository().join("tests/instructions.json")
    }

    /// Reads them from the repository.
    pub fn read() -> Self {
        let text = fs::read_to_string(Self::path())
            .unwrap_or_else(|error| panic!("{}: {error}; renew it with {RENEW}", Self::path().display()));
        Self(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", Self::path().display())))
    }

    /// Takes over what was counted in a profile.
    pub fn renew(&mut self, profile: &str, counted: &Counted) {
        let count = |(way, added): &(Way, Added)| {
            (way.to_string(), json!({ "liburscope.so": added.library, "elsewhere": added.elsewhere }))
        };
        self.0.insert(profile.to_owned(), Value::Object(counted.ways.iter().map(count).collect()));
    }

    /// Writes them to the repository.
    pub fn write(&self) {
        let text = serde_json::to_string_pretty(&self.0).expect("numbers can be written");
        fs::write(Self::path(), text + "\n").expect("a file of the repository can be written");
    }

    /// What is kept for a way in a profile.
    pub fn get(&self, profile: &str, way: Way) -> Option<Added> {
        let count = self.0.get(profile)?.get(way.to_string())?;
        Some(Added { library: count["liburscope.so"].as_u64()?, elsewhere: count["elsewhere"].as_i64()? })
    }

    /// A line for each way whose count differs by more than [`TOLERANCE`], with what to do.
    pub fn differences(&self, profile: &str, counted: &Counted) -> Vec<String> {
        counted.ways.iter().filter_map(|(way, now)| self.difference(profile, *way, *now)).collect()
    }

    fn difference(&self, profile: &str, way: Way, now: Added) -> Option<String> {
        let Some(kept) = self.get(profile, way) else {
            return Some(format!("{way}: no count is kept for the profile {profile}; renew the counts with {RENEW}"));
        };
        let before = kept.total();
        let after = now.total();
        let change = format!("{way}, profile {profile}: {before} instructions per call were added, now {after}");
        if 100 * after > (100 + TOLERANCE) * before {
            Some(format!(
                "{change}. Find out why; if it is worth it, say so in the commit and renew the counts with {RENEW}"
            ))
        } else if 100 * after < (100 - TOLERANCE) * before {
            Some(format!("{change}. Renew the counts with {RENEW}, so that this stays"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(library: u64) -> Counted {
        Counted { bare: 600, ways: vec![(Way::ALL[0], Added { library, elsewhere: 100 })] }
    }

    #[test]
    fn a_count_may_differ_by_the_tolerance_and_no_more() {
        let mut kept = RecordedCounts::default();
        kept.renew("dev", &counted(900));
        let differences = |library| kept.differences("dev", &counted(library));
        assert!(differences(900).is_empty() && differences(950).is_empty() && differences(850).is_empty());
        assert!(differences(951)[0].contains("were added, now 1051. Find out why"), "{:?}", differences(951));
        assert!(differences(849)[0].contains("were added, now 949. Renew the counts"), "{:?}", differences(849));
    }

    #[test]
    fn a_missing_count_is_a_difference() {
        assert!(RecordedCounts::default().differences("dev", &counted(1))[0].contains("no count is kept"));
    }
}
