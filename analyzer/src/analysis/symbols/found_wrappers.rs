//! Wrappers that are found: functions of the program through which its calls of a function go, such as its own
//! allocator. The call stacks of each process are compared. Wrappers are no call sites.
//!
//! A function that is taken for a wrapper by mistake hides the place of a mistake, so the calls of one process must
//! show that its callers differ. Several processes often do the same from different lines of `main`, and this says
//! nothing.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use urscope_schema::api::{Effect, Function};

use super::frames::{bare, file_name};
use crate::analysis::Frame;

/// The most wrappers that are kept of a node.
const KEPT: usize = 1 << 10;

/// A function of the program, as it is named in all processes and on all machines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct FoundWrapper {
    /// Its name, or, where that is not known, the address of the call in its module.
    function: String,
    /// The name of its source, or of its module where the source is not known.
    place: String,
}

/// The wrappers that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct FoundWrappers(BTreeSet<FoundWrapper>);

/// A function of C that a process called from a call stack.
pub(crate) struct Made {
    pub(crate) function: Function,
    /// Those of [`compared`].
    pub(crate) frames: Arc<[Frame]>,
}

/// The frames of a call stack that are compared with others, innermost first: those of the program.
pub(crate) fn compared(mut stack: Vec<Frame>) -> Arc<[Frame]> {
    stack.retain(|frame| frame.is_of_program() && !is_of_library(frame));
    stack.into()
}

/// Names a function: its name and the name of its source, or the address of the call and the module.
type Named<'f> = (&'f str, &'f str);

/// Names a place in a function: its line, or the address of the call where there are no lines.
type Step<'f> = (Named<'f>, Option<u32>, &'f str);

fn named(frame: &Frame) -> Named<'_> {
    match &frame.function {
        Some(function) => (function, file_name(frame.file.as_ref().unwrap_or(&frame.module))),
        None => (&frame.offset, file_name(&frame.module)),
    }
}

impl FoundWrapper {
    fn from_frame(frame: &Frame) -> Self {
        let (function, place) = named(frame);
        Self { function: function.to_owned(), place: place.to_owned() }
    }
}

impl Frame {
    /// The place in its function: the line, or the address where there are no lines.
    pub(super) fn place(&self) -> Option<u64> {
        let address = || u64::from_str_radix(self.offset.strip_prefix("0x")?, 16).ok();
        self.line.map(u64::from).or_else(address)
    }

    /// Whether it may be the place in the same function that another frame is, perhaps of another run and after changes
    /// of the source.
    pub(crate) fn may_be_at(&self, other: &Self) -> bool {
        let alone = |frame: &Self| {
            if frame.places.is_empty() { frame.place().into_iter().collect() } else { frame.places.clone() }
        };
        let own = alone(self);
        let others = alone(other);
        let number = |frame: &Self, places: &[u64]| places.iter().position(|place| frame.place() == Some(*place));
        match own.len() == others.len() {
            _ if self.place() == other.place() => true,
            _ if self.within.is_some() && self.within == other.within => true,
            // Lines have moved, and their order is the same.
            true => number(self, &own) == number(other, &others),
            // What another run called is elsewhere.
            false => number(other, &own).is_none() && number(self, &others).is_none(),
        }
    }
}

fn step(frame: &Frame) -> Step<'_> {
    (named(frame), frame.line, if frame.line.is_some() { "" } else { &frame.offset })
}

impl FoundWrappers {
    /// The wrappers in the calls of processes of one program.
    pub(crate) fn find(processes: &[Vec<Made>]) -> Self {
        let working = working(processes);
        let mut found: HashSet<Named<'_>> = HashSet::new();
        for process in processes {
            while let Some(new) = of_any_function(process, &found, &working) {
                found.insert(new);
            }
        }
        let of_any = found.clone();
        for process in processes {
            let mut by_function: BTreeMap<Function, BTreeSet<Vec<Step<'_>>>> = BTreeMap::new();
            for made in process {
                by_function.entry(made.function).or_default().insert(steps(made, &of_any));
            }
            found.extend(by_function.into_values().flat_map(|stacks| of_one_function(&stacks, &working)));
        }
        found.extend(of_headers(processes, &found, &working));
        let kept = found.into_iter().take(KEPT);
        Self(kept.map(|(name, place)| FoundWrapper { function: name.to_owned(), place: place.to_owned() }).collect())
    }

    /// Whether the frame is of one of them.
    pub(super) fn has(&self, frame: &Frame) -> bool {
        !self.0.is_empty() && self.0.contains(&FoundWrapper::from_frame(frame))
    }

    /// Adds the function of a frame.
    pub(crate) fn add(&mut self, frame: &Frame) {
        self.0.insert(FoundWrapper::from_frame(frame));
    }

    /// Adds those of others.
    pub(crate) fn extend(&mut self, others: &Self) {
        self.0.extend(others.0.iter().cloned());
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The most places in a function that are kept.
const PLACES_KEPT: usize = 64;

/// The places in each function of a program from which its processes call a function of C, directly or through others:
/// the lines, or the addresses where there are no lines.
#[derive(Default)]
pub(crate) struct CallPlaces(BTreeMap<(Function, FoundWrapper), BTreeSet<u64>>);

impl CallPlaces {
    /// The places in the calls of processes of one program.
    pub(crate) fn from_processes(processes: &[Vec<Made>]) -> Self {
        let mut places = Self::default();
        for made in processes.iter().flatten() {
            for frame in &*made.frames {
                let known = places.0.entry((made.function, FoundWrapper::from_frame(frame))).or_default();
                if known.len() < PLACES_KEPT {
                    known.extend(frame.place());
                }
            }
        }
        places
    }

    /// Notes the places in the functions of a call stack, where there are several.
    pub(crate) fn note(&self, function: Function, stack: &mut [Frame]) {
        for frame in stack {
            let places = self.0.get(&(function, FoundWrapper::from_frame(frame)));
            let places =
                places.filter(|places| places.len() > 1 && frame.place().is_some_and(|own| places.contains(&own)));
            frame.places = places.into_iter().flatten().copied().collect();
        }
    }
}

/// The steps of a call without the innermost ones, which are of any of these functions.
fn steps<'f>(made: &'f Made, but: &HashSet<Named<'f>>) -> Vec<Step<'f>> {
    made.frames.iter().map(step).skip_while(|(function, ..)| but.contains(function)).collect()
}

/// What a call does to an object: `Some(true)` if it begins with it, `Some(false)` if it ends.
fn begins(function: Function) -> Option<bool> {
    match function.effect() {
        Effect::Allocates(_)
        | Effect::Creates(_)
        | Effect::Exports(_)
        | Effect::MayExport(_)
        | Effect::Opens(_)
        | Effect::Maps(_) => Some(true),
        Effect::Frees(_)
        | Effect::FreesLater(_)
        | Effect::Destroys(_)
        | Effect::Resets(_)
        | Effect::Releases(_)
        | Effect::Puts(_)
        | Effect::Closes(_)
        | Effect::Unmaps(_) => Some(false),
        _ => None,
    }
}

/// The functions that do the work: objects begin at one place in them and end at another one, so they use what others
/// wrap.
fn working(processes: &[Vec<Made>]) -> HashSet<Named<'_>> {
    // The first place where something begins, and where something ends; `None` if there are several.
    type Seen<'f> = [Option<Option<(Option<u32>, &'f str)>>; 2];
    let mut places: BTreeMap<Named<'_>, Seen<'_>> = BTreeMap::new();
    for made in processes.iter().flatten() {
        let Some(begins) = begins(made.function) else { continue };
        for frame in &*made.frames {
            let (function, line, offset) = step(frame);
            let [begin, end] = places.entry(function).or_default();
            let seen = if begins { begin } else { end };
            *seen = Some(Some((line, offset)).filter(|here| seen.is_none_or(|known| known == Some(*here))));
        }
    }
    let works =
        |[begin, end]: &Seen<'_>| matches!((begin, end), (Some(begin), Some(end)) if begin != end || begin.is_none());
    places.into_iter().filter(|(_, seen)| works(seen)).map(|(function, _)| function).collect()
}

/// A function in which one place calls several functions of C for several callers, as one that is given the name of
/// what it calls.
fn of_any_function<'f>(
    process: &'f [Made],
    known: &HashSet<Named<'f>>,
    working: &HashSet<Named<'f>>,
) -> Option<Named<'f>> {
    // By place, with its address: the functions of C, and the callers.
    type Passed<'f> = (BTreeSet<Function>, BTreeSet<Step<'f>>);
    let mut places: BTreeMap<(Step<'_>, &str), Passed<'_>> = BTreeMap::new();
    for made in process {
        let mut frames = made.frames.iter().skip_while(|frame| known.contains(&named(frame)));
        let Some((first, caller)) = frames.next().zip(frames.next()) else { continue };
        let (functions, callers) = places.entry((step(first), &first.offset)).or_default();
        functions.insert(made.function);
        callers.insert(step(caller));
    }
    let mut found = places.into_iter().filter(|(_, (functions, callers))| functions.len() > 1 && callers.len() > 1);
    found.find_map(|(((function, ..), _), _)| (!working.contains(&function)).then_some(function))
}

/// The functions through which all these stacks, or nearly all, lead from different callers.
fn of_one_function<'f>(stacks: &BTreeSet<Vec<Step<'f>>>, working: &HashSet<Named<'f>>) -> Vec<Named<'f>> {
    let mut stacks: Vec<&[Step<'_>]> = stacks.iter().map(Vec::as_slice).collect();
    let mut passed: Vec<Named<'_>> = Vec::new();
    loop {
        let here: Option<BTreeSet<Step<'_>>> = stacks.iter().map(|stack| stack.first().copied()).collect();
        // A stack ends here: nothing differs between its caller and others.
        let Some(here) = here else { return Vec::new() };
        let is_working = here.iter().any(|(function, ..)| working.contains(function));
        let only = if here.len() == 1 { here.first().copied() } else { None };
        match only.or_else(|| most(&stacks)) {
            // Nothing differs below the work.
            Some(_) if only.is_some() && is_working => return Vec::new(),
            Some(step) if !working.contains(&step.0) => {
                passed.push(step.0);
                stacks.retain(|stack| stack.first() == Some(&step));
                for stack in &mut stacks {
                    *stack = stack.get(1..).unwrap_or_default();
                }
            }
            // Callers differ.
            _ => {
                // A function that calls itself is both.
                let both = passed.iter().position(|function| here.iter().any(|(other, ..)| other == function));
                passed.truncate(both.unwrap_or(passed.len()));
                return passed;
            }
        }
    }
}

/// The endings of files that hold what several sources need.
pub(super) const HEADERS: [&str; 7] = [".h", ".hpp", ".hh", ".hxx", ".cuh", ".inl", ".ipp"];

/// The other functions in headers with wrappers that are called from outside of them. What helps in one call is
/// mostly beside what helps in the others, and there may be only one caller of it.
fn of_headers<'f>(
    processes: &'f [Vec<Made>],
    found: &HashSet<Named<'f>>,
    working: &HashSet<Named<'f>>,
) -> Vec<Named<'f>> {
    let is_helper = |(_, source): &Named<'_>| HEADERS.iter().any(|ending| source.ends_with(ending));
    let headers: HashSet<&str> =
        found.iter().filter(|function| is_helper(function)).map(|(_, source)| *source).collect();
    let mut helpers = Vec::new();
    for made in processes.iter().flatten() {
        let mut functions = made.frames.iter().map(named);
        let mut inside = Vec::new();
        let outside = functions.find(|function| {
            let is_inside = found.contains(function) || headers.contains(function.1) && !working.contains(function);
            inside.extend(is_inside.then_some(*function));
            !is_inside
        });
        // One that works in the header is the place.
        if outside.is_some_and(|function| !headers.contains(function.1)) {
            helpers.extend(inside);
        }
    }
    helpers
}

/// The place that at least three callers call, three times as many as all others, which are in other functions.
fn most<'f>(stacks: &[&[Step<'f>]]) -> Option<Step<'f>> {
    let mut callers: BTreeMap<Step<'_>, BTreeSet<Option<&Step<'_>>>> = BTreeMap::new();
    for stack in stacks {
        callers.entry(*stack.first()?).or_default().insert(stack.get(1));
    }
    let (most, count) = callers.iter().map(|(step, callers)| (*step, callers.len())).max_by_key(|(_, count)| *count)?;
    let others = callers.iter().filter(|(step, _)| **step != most);
    let mut rest = 0;
    let mut is_alone = true;
    for (step, callers) in others {
        rest += callers.len();
        is_alone &= step.0 != most.0;
    }
    // Without names, nothing says whether two addresses are in one function.
    let has_name = most.1.is_some() || most.0.0 != most.2;
    (is_alone && has_name && count >= 3 && count >= 3 * rest).then_some(most)
}

/// Whether the frame is of the C++ library or of MPI. Both call for others, also where they are compiled into the
/// program.
pub(super) fn is_of_library(frame: &Frame) -> bool {
    let module = file_name(&frame.module);
    if ["libmpi", "libpmpi"].iter().any(|beginning| module.starts_with(beginning)) {
        return true;
    }
    // A template's name has its result in front.
    let name = frame.function.as_deref().map(bare).unwrap_or_default();
    let name = name.split('<').next().unwrap_or_default();
    let name = name.rsplit(' ').next().unwrap_or_default();
    ["std::", "__gnu_cxx::"].iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests;
