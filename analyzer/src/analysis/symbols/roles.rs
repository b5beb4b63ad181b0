//! The roles of processes: the function that only one process of a run runs, such as `producer`.

use std::collections::BTreeMap;

use super::{found_wrappers::Made, frames::plain_name};
use crate::analysis::Frame;

/// The roles of the processes, in their order. Each is the outermost function through which all calls of a process go,
/// and no call of another one.
pub(crate) fn roles(processes: &[&[Made]]) -> Vec<Option<String>> {
    let common: Vec<Vec<String>> = processes.iter().map(|made| common(made)).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for made in processes {
        let mut names: Vec<&str> =
            made.iter().flat_map(|made| made.frames.iter()).filter_map(|frame| frame.function.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            *counts.entry(name).or_default() += 1;
        }
    }
    let is_own = |name: &&String| counts.get(name.as_str()) == Some(&1);
    common.iter().map(|names| names.iter().find(is_own).map(|name| plain_name(name))).collect()
}

/// The functions through which all calls of a process go, from the outside to the inside, without those that every
/// program has and those that call what they are given.
fn common(made: &[Made]) -> Vec<String> {
    let outward = |made: &Made| -> Vec<String> {
        made.frames.iter().rev().map(|frame| frame.function.clone().unwrap_or_default()).collect()
    };
    // Some calls are made for the program when it exits.
    let mut stacks = made.iter().filter(|made| made.frames.iter().any(is_named));
    let Some(first) = stacks.next() else { return Vec::new() };
    let mut names = outward(first);
    for other in stacks {
        let same = names.iter().zip(outward(other)).take_while(|(one, other)| *one == other).count();
        names.truncate(same);
    }
    let frames: Vec<&Frame> = first.frames.iter().rev().take(names.len()).collect();
    frames.into_iter().filter(|frame| is_named(frame)).filter_map(|frame| frame.function.clone()).collect()
}

fn is_named(frame: &Frame) -> bool {
    let name = frame.function.as_deref().unwrap_or_default();
    let is_lambda = name.contains("lambda") || name.starts_with("operator()") || name.starts_with('<');
    !(["", "main", "_start", "_FUN"].contains(&name) || is_lambda || frame.takes_function())
}

#[cfg(test)]
mod tests {
    use urscope_schema::api::Function;

    use super::*;
    use crate::analysis::symbols::compared;

    fn made(frames: &str) -> Made {
        let frames = frames.split(" < ").map(|function| Frame::new(function, "/src/app.cpp", 3)).collect();
        Made { function: Function::urUSMFree, frames: compared(frames) }
    }

    fn roles_of(processes: &[&[Made]]) -> Vec<String> {
        roles(processes).into_iter().map(Option::unwrap_or_default).collect()
    }

    #[test]
    fn a_role_is_the_outermost_function_that_one_process_runs() {
        let producer = [made("free < producer(Peer&) < run < main"), made("get < producer(Peer&) < run < main")];
        let consumer = [made("open < consumer(Peer&) < run < main"), made("_start"), made("main")];
        assert_eq!(roles_of(&[&producer, &consumer]), ["producer", "consumer"]);
    }

    #[test]
    fn what_several_processes_run_is_no_role() {
        let rank = || [made("free < rank_main < main"), made("open < rank_main < main")];
        assert_eq!(roles_of(&[&rank(), &rank()]), ["", ""]);
        // Not all calls of it.
        let mixed = [made("free < produce < main"), made("get < main")];
        let other = [made("open < main")];
        assert_eq!(roles_of(&[&mixed, &other]), ["", "open"]);
        assert_eq!(roles_of(&[&[], &other]), ["", "open"]);
    }
}
