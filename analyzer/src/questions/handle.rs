//! The life of one handle over all processes, in the order of time.

use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};
use urscope_rules::{ExportId, Place, ProcessId, Tracker};
use urscope_schema::{
    api::{Function, UrResult},
    call::{Enter, Exit, Values},
};

use super::{QuestionError, VERSION};
use crate::analysis::{Analysis, FoundFinding, Location, Observer, Options};

/// The life of a handle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandleHistory {
    /// [`VERSION`].
    pub version: u32,
    /// What was asked for.
    pub name: String,
    /// The fingerprints of the handle data that it is about: more than one where an address was used again.
    pub fingerprints: Vec<String>,
    /// What happened, in the order of time.
    pub moments: Vec<Moment>,
    /// What the law says of it.
    pub findings: Vec<FoundFinding>,
}

/// One call in the life of a handle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// The call.
    pub place: Location,
    /// The fingerprint of the handle data.
    pub fingerprint: String,
    /// What the call was about: the address or handle in that process.
    pub value: Option<String>,
    /// What was answered; none if the call never returned.
    pub result: Option<String>,
    /// How long it took in nanoseconds.
    pub took_ns: Option<u64>,
}

/// No handle of that name was in the run.
#[derive(Debug, thiserror::Error)]
#[error(
    "no handle of these traces has the fingerprint or the address {0}; `urscope holders` and the findings of `urscope check` name fingerprints"
)]
pub struct NoSuchHandle(String);

/// The life of the handle that has `name` as the fingerprint of its data, or as an address in any process.
pub fn handle(paths: &[PathBuf], options: &Options, name: u64) -> Result<HandleHistory, QuestionError> {
    let mut both = (Search::of(name), HistoryBuilder::of(Which::Fingerprint(name)));
    let mut analysis = Analysis::run(paths, options, &mut both)?;
    let (search, mut history) = both;
    let word = format!("{name:#x}");
    if search.found.is_empty() {
        return Err(NoSuchHandle(word).into());
    }
    if search.by_address {
        // An address in a consumer is known only when it opens: by then the first chapters have been told.
        history = HistoryBuilder::of(Which::These(search.found));
        analysis = Analysis::run(paths, options, &mut history)?;
    }
    let mut moments: Vec<_> = history.moments.into_iter().map(|told| told.show(&mut analysis)).collect();
    // A thread that had to wait with its record was heard late.
    moments.sort_by_key(|moment| moment.place.time_ns);
    let mut fingerprints: Vec<_> = moments.iter().map(|moment| moment.fingerprint.clone()).collect();
    fingerprints.sort();
    fingerprints.dedup();
    let about = |found: &FoundFinding| found.fingerprint.as_ref().is_some_and(|bytes| fingerprints.contains(bytes));
    let findings = analysis.judgement().findings.into_iter().filter(about).collect();
    Ok(HandleHistory { version: VERSION, name: word, fingerprints, moments, findings })
}

/// Finds out which exports are meant.
struct Search {
    name: u64,
    found: BTreeSet<ExportId>,
    /// Whether one of them is meant that has other handle data.
    by_address: bool,
}

impl Search {
    fn of(name: u64) -> Self {
        Self { name, found: BTreeSet::new(), by_address: false }
    }

    fn look(&mut self, tracker: &Tracker, who: ProcessId, function: Function, values: &Values) {
        let named = [values.pointer, values.data, values.object].contains(&Some(self.name));
        tracker.about(who, function, values, |id| {
            let by_data = tracker.export(id).is_some_and(|shared| shared.fingerprint == self.name);
            if by_data || named {
                self.by_address |= !by_data;
                self.found.insert(id);
            }
        });
    }
}

impl Observer for Search {
    fn enter(&mut self, tracker: &Tracker, who: ProcessId, _: u64, enter: &Enter) {
        self.look(tracker, who, enter.function, &enter.values);
        // What a get is asked for stands in its beginning, and what it made in its end.
        if enter.values.pointer == Some(self.name) || enter.values.object == Some(self.name) {
            let of_it = tracker.shared().into_iter().filter(|shared| shared.producer == who);
            for shared in of_it.filter(|shared| shared.value == Some(self.name)) {
                self.by_address |= shared.fingerprint != self.name;
                self.found.insert(shared.id);
            }
        }
    }

    fn exit(&mut self, tracker: &Tracker, who: ProcessId, _: u64, exit: &Exit) {
        self.look(tracker, who, exit.function, &exit.values);
    }
}

/// What a history is of.
enum Which {
    /// Of whatever has these bytes.
    Fingerprint(u64),
    /// Of these alone.
    These(BTreeSet<ExportId>),
}

/// Writes down what happens to them.
struct HistoryBuilder {
    of: Which,
    moments: Vec<Told>,
    /// The calls under way: when each began, and the moment that was made of it.
    under_way: HashMap<(ProcessId, u64), (Place, Values, Option<usize>)>,
}

struct Told {
    place: Place,
    fingerprint: u64,
    value: Option<u64>,
    result: Option<UrResult>,
    took: Option<u64>,
}

impl Told {
    fn show(self, analysis: &mut Analysis<'_>) -> Moment {
        Moment {
            place: analysis.location(self.place),
            fingerprint: format!("{:#x}", self.fingerprint),
            value: self.value.map(|value| format!("{value:#x}")),
            result: self.result.map(|result| result.to_string()),
            took_ns: self.took,
        }
    }
}

impl HistoryBuilder {
    fn of(of: Which) -> Self {
        Self { of, moments: Vec::new(), under_way: HashMap::new() }
    }

    fn one_of_them(&self, tracker: &Tracker, who: ProcessId, call: (Function, &Values)) -> Option<u64> {
        let mut bytes = None;
        tracker.about(who, call.0, call.1, |id| {
            let known = || tracker.export(id).map(|shared| shared.fingerprint);
            if bytes.is_none() {
                bytes = match &self.of {
                    Which::Fingerprint(word) => known().filter(|bytes| bytes == word),
                    Which::These(ids) => ids.contains(&id).then(known).flatten(),
                };
            }
        });
        bytes
    }
}

impl Observer for HistoryBuilder {
    fn enter(&mut self, tracker: &Tracker, who: ProcessId, _: u64, enter: &Enter) {
        let Enter { function, call, tid, time, values } = *enter;
        let place = Place { process: who, tid, time, call: Some(call), function: Some(function), stack: values.stack };
        let told = self.one_of_them(tracker, who, (function, &values)).map(|fingerprint| {
            self.moments.push(Told { place, fingerprint, value: values.subject(), result: None, took: None });
            self.moments.len() - 1
        });
        if told.is_some() || function.is_ipc() {
            self.under_way.insert((who, call), (place, values, told));
        }
    }

    fn exit(&mut self, tracker: &Tracker, who: ProcessId, _: u64, exit: &Exit) {
        let Some((place, asked, told)) = self.under_way.remove(&(who, exit.call)) else { return };
        let told = told.or_else(|| {
            let fingerprint = self.one_of_them(tracker, who, (exit.function, &exit.values))?;
            let born = tracker.born(who, asked.pointer?).filter(|_| exit.values.data.is_some());
            let fresh = born.filter(|born| !self.moments.iter().any(|told| told.place == *born));
            let (result, took) = (Some(UrResult::SUCCESS), None);
            let value = asked.pointer;
            self.moments.extend(fresh.map(|place| Told { place, fingerprint, value, result, took }));
            self.moments.push(Told { place, fingerprint, value: None, result: None, took: None });
            Some(self.moments.len() - 1)
        });
        if let Some(told) = told.and_then(|told| self.moments.get_mut(told)) {
            told.value = exit.values.subject().or(told.value);
            told.result = Some(exit.result);
            told.took = Some(exit.time.0.saturating_sub(place.time.0));
        }
    }
}
