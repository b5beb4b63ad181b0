//! Sets of ranks of a job, written as `0,3-5`, and the names of their processes.

use std::{fmt, ops::RangeInclusive, str::FromStr};

/// A set of ranks, written as `0,3-5`. The empty text stands for all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks(Vec<RangeInclusive<u32>>);

impl Ranks {
    /// Whether a process belongs to the set; one without a rank always does.
    pub fn has(&self, rank: Option<u32>) -> bool {
        self.are_all() || rank.is_none_or(|rank| self.0.iter().any(|range| range.contains(&rank)))
    }

    /// Whether all ranks belong to the set.
    pub fn are_all(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for Ranks {
    type Err = &'static str;

    /// Parses ranks and ranges of them, separated by commas. The empty text stands for all ranks.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "ranks and ranges of them, as in 0,3-5";
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first = first.trim().parse().ok()?;
            let last = last.trim().parse().ok()?;
            (first <= last).then_some(first..=last)
        };
        if text.is_empty() {
            return Ok(Self::default());
        }
        text.split(',').map(range).collect::<Option<_>>().map(Self).ok_or(EXPECTED)
    }
}

impl fmt::Display for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let first = range.start();
            let last = range.end();
            if first == last { write!(f, "{comma}{first}")? } else { write!(f, "{comma}{first}-{last}")? }
        }
        Ok(())
    }
}

/// A list of ranks, written as `0,3-5`.
pub fn listed(ranks: impl IntoIterator<Item = u32>) -> String {
    let mut all: Vec<u32> = ranks.into_iter().collect();
    all.sort_unstable();
    let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
    for rank in all {
        match ranges.last_mut() {
            Some(range) if rank <= range.end().saturating_add(1) => *range = *range.start()..=rank,
            _ => ranges.push(rank..=rank),
        }
    }
    Ranks(ranges).to_string()
}

/// The name of a process in text: `rank 7 (pid 12510)`, or without a rank `solver (pid 12510)`.
pub fn process_name(executable: &str, pid: u32, rank: Option<u32>) -> String {
    let file = executable.rsplit('/').next().unwrap_or_default();
    match (rank, file) {
        (Some(rank), _) => format!("rank {rank} (pid {pid})"),
        (None, "") => format!("pid {pid}"),
        (None, file) => format!("{file} (pid {pid})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_read_and_written() {
        let ranks: Ranks = "0,3-5".parse().unwrap();
        let chosen: Vec<u32> = (0..8).filter(|rank| ranks.has(Some(*rank))).collect();
        assert_eq!((chosen, ranks.to_string()), (vec![0, 3, 4, 5], "0,3-5".to_owned()));
        assert!(ranks.has(None) && !ranks.are_all());
        let all: Ranks = "".parse().unwrap();
        assert!(all.has(Some(7)) && all.are_all());
        for wrong in ["x", "3-", "-3", "5-3", "1,,2", "1,", "4294967296"] {
            assert!(wrong.parse::<Ranks>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn neighbours_are_listed_as_ranges() {
        assert_eq!(listed([5, 0, 3, 4, 3]), "0,3-5");
        assert_eq!(listed([]), "");
        assert_eq!(listed([u32::MAX, u32::MAX]), "4294967295");
    }

    #[test]
    fn a_process_is_named_by_its_rank_or_by_its_program() {
        assert_eq!(process_name("/app/ring", 42, Some(7)), "rank 7 (pid 42)");
        assert_eq!(process_name("/app/ring", 42, None), "ring (pid 42)");
        assert_eq!(process_name("", 42, None), "pid 42");
    }
}
