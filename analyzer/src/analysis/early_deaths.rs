//! Says which processes signals ended before they made traces.

use std::collections::BTreeMap;

use urscope_schema::counted;
use urscope_schema::host::ranks::{listed, process_name};
use urscope_schema::trace::process_times::{EarlyDeath, ProcessTimes};

use crate::signals;

/// What these died of and `before` what, as part of a message: `both ranks died of SIGILL before they loaded an
/// adapter`. `None` if there are none, but for those of expected signals.
pub fn early_deaths<'t>(
    all: impl IntoIterator<Item = &'t ProcessTimes>,
    expected: &[String],
    before: &str,
) -> Option<String> {
    let mut by_signal: BTreeMap<u32, Vec<&ProcessTimes>> = BTreeMap::new();
    for process in all {
        let signal = process.signal.unwrap_or_default();
        if !expected.contains(&signals::name(signal)) {
            by_signal.entry(signal).or_default().push(process);
        }
    }
    let count: usize = by_signal.values().map(Vec::len).sum();
    let died =
        |(signal, processes): (&u32, &Vec<_>)| format!("{} died of {}", named(processes), signals::name(*signal));
    let died: Vec<String> = by_signal.iter().map(died).collect();
    let they = if count == 1 { "it" } else { "they" };
    let meaning = by_signal.keys().find_map(|signal| signals::meaning(*signal));
    let meaning = meaning.map_or_else(String::new, |meaning| format!("; {meaning}"));
    (count > 0).then(|| format!("{} before {they} {before}{meaning}", died.join(", and ")))
}

fn named(processes: &[&ProcessTimes]) -> String {
    let of = |process: &ProcessTimes| process.early_death.clone().unwrap_or_default();
    let ranks: Option<Vec<u32>> = processes.iter().map(|process| of(process).rank).collect();
    match (ranks, processes) {
        (Some(ranks), [first, _, ..]) => {
            let are_all = of(first).ranks == Some(ranks.len());
            match ranks.len() {
                2 if are_all => "both ranks".to_owned(),
                count if are_all => format!("all {count} ranks"),
                _ => format!("the ranks {}", listed(ranks)),
            }
        }
        (_, [first, others @ ..]) => {
            let EarlyDeath { executable, rank, .. } = of(first);
            let name = process_name(&executable, first.pid, rank);
            if others.is_empty() { name } else { format!("{name} and {}", counted(others.len(), "other process")) }
        }
        (_, []) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn death(pid: u32, rank: Option<u32>, signal: u32) -> ProcessTimes {
        let early_death = Some(EarlyDeath { executable: "/bin/app".into(), rank, ranks: rank.map(|_| 3) });
        ProcessTimes { pid, signal: Some(signal), early_death, ..ProcessTimes::default() }
    }

    fn said(all: &[ProcessTimes]) -> String {
        early_deaths(all, &["SIGTERM".into()], "loaded an adapter").unwrap_or_default()
    }

    #[test]
    fn processes_are_named_by_signal() {
        assert_eq!(said(&[]), "");
        assert_eq!(said(&[death(7, None, 11)]), "app (pid 7) died of SIGSEGV before it loaded an adapter");
        let several = [death(7, None, 11), death(8, None, 11), death(9, None, 6)];
        assert_eq!(
            said(&several),
            "app (pid 9) died of SIGABRT, and app (pid 7) and 1 other process died of SIGSEGV before they loaded an adapter"
        );
    }

    #[test]
    fn ranks_are_named_as_a_part_of_their_job_or_all_of_it() {
        let ranks: Vec<_> = (0..3).map(|rank| death(7 + rank, Some(rank), 4)).collect();
        assert!(
            said(&ranks[1..2])
                .starts_with("rank 1 (pid 8) died of SIGILL before it loaded an adapter; SIGILL usually means")
        );
        assert!(said(&ranks[1..]).starts_with("the ranks 1-2 died of SIGILL before they loaded"));
        assert!(said(&ranks).starts_with("all 3 ranks died of SIGILL before they loaded"));
        let of_two = ranks[..2].iter().cloned().map(|mut process| {
            process.early_death.as_mut().unwrap().ranks = Some(2);
            process
        });
        assert!(said(&of_two.collect::<Vec<_>>()).starts_with("both ranks died of SIGILL before they loaded"));
    }

    #[test]
    fn expected_signals_are_not_said() {
        assert_eq!(said(&[death(7, Some(0), 15)]), "");
        assert_eq!(said(&[death(7, None, 11), death(8, Some(0), 15)]), said(&[death(7, None, 11)]));
    }
}
