//! The history of one handle in all processes, in the order of time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use urscope_rules::{ExportId, Place, ProcessId, Shared, Tracker};
use urscope_schema::api::{Function, ResultCode};
use urscope_schema::call::{Enter, Exit, Values};
use urscope_schema::{counted, since};

use super::{QuestionError, VERSION};
use crate::analysis::{Analysis, FoundFinding, Location, Observer, Options};

/// The history of a handle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandleHistory {
    /// [`VERSION`].
    pub version: u32,
    /// The requested fingerprint or address.
    pub name: String,
    /// The fingerprints of the handle data: more than one if an address was reused.
    pub fingerprints: Vec<String>,
    /// The calls about it, in the order of time.
    pub moments: Vec<Moment>,
    /// The findings about it.
    pub findings: Vec<FoundFinding>,
}

/// One call in the history of a handle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// The call.
    pub place: Location,
    /// The fingerprint of the handle data.
    pub fingerprint: String,
    /// The address or handle in that process.
    pub value: Option<String>,
    /// The result; `None` if the call never returned.
    pub result: Option<String>,
    /// The duration of the call in nanoseconds.
    pub took_ns: Option<u64>,
}

/// The history of the handle whose data has the fingerprint `name`, or that has the address `name` in any process.
pub fn handle(paths: &[PathBuf], options: &Options, name: u64) -> Result<HandleHistory, QuestionError> {
    let mut both = (Search::new(name), HistoryBuilder::new(Which::Fingerprints(BTreeSet::from([name]))));
    let mut analysis = Analysis::run(paths, options, &mut both)?;
    let (search, mut history) = both;
    let word = format!("{name:#x}");
    if search.found.is_empty() {
        return Err(QuestionError::NoSuchHandle { name: word, known: search.known(&mut analysis) });
    }
    if search.by_address {
        // The address in a consumer is known only when it opens the handle, after the first calls. So this needs a
        // second pass.
        history = HistoryBuilder::new(Which::These(search.found));
        analysis = Analysis::run(paths, options, &mut history)?;
    }
    let moments = history.shown(&mut analysis);
    let mut fingerprints: Vec<_> = moments.iter().map(|moment| moment.fingerprint.clone()).collect();
    fingerprints.sort();
    fingerprints.dedup();
    let about = |found: &FoundFinding| found.fingerprint.as_ref().is_some_and(|bytes| fingerprints.contains(bytes));
    let findings = analysis.judgement().findings.into_iter().filter(about).collect();
    Ok(HandleHistory { version: VERSION, name: word, fingerprints, moments, findings })
}

/// The handles of a run, for messages: the fingerprint of each, its kind and who got it, in the order of the gets.
pub fn handles(paths: &[PathBuf], options: &Options) -> Result<KnownHandles, QuestionError> {
    let mut search = Search::new(0);
    let mut analysis = Analysis::run(paths, options, &mut search)?;
    Ok(search.known(&mut analysis))
}

/// The first handles of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownHandles(Vec<String>);

/// How many handles a message names.
const NAMED: usize = 8;

impl Display for KnownHandles {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(known) = self;
        let named = known.join(", ");
        match known.len() {
            0 => f.write_str("these traces have no handles"),
            NAMED.. => write!(
                f,
                "the first handles in these traces are {named}; urscope holders and the findings show fingerprints, too"
            ),
            count => write!(f, "these traces have {}: {named}", counted(count, "handle")),
        }
    }
}

/// The histories of the handles whose data has these fingerprints, as [`handle`] answers. It leaves out the findings.
pub fn histories(
    paths: &[PathBuf],
    options: &Options,
    fingerprints: BTreeSet<u64>,
) -> Result<Vec<HandleHistory>, QuestionError> {
    let mut history = HistoryBuilder::new(Which::Fingerprints(fingerprints));
    let mut analysis = Analysis::run(paths, options, &mut history)?;
    let mut of: BTreeMap<String, Vec<Moment>> = BTreeMap::new();
    for moment in history.shown(&mut analysis) {
        of.entry(moment.fingerprint.clone()).or_default().push(moment);
    }
    let history = |(name, moments): (String, _)| HandleHistory {
        version: VERSION,
        fingerprints: vec![name.clone()],
        name,
        moments,
        findings: Vec::new(),
    };
    Ok(of.into_iter().map(history).collect())
}

/// Finds the exports that a fingerprint or address means.
struct Search {
    name: u64,
    found: BTreeSet<ExportId>,
    /// Whether one of them has another fingerprint, so that `name` is its address.
    by_address: bool,
    /// The first exports that calls were about, at most [`NAMED`], each fingerprint once.
    first: Vec<Shared>,
}

impl Search {
    fn new(name: u64) -> Self {
        Self { name, found: BTreeSet::new(), by_address: false, first: Vec::new() }
    }

    fn check(&mut self, tracker: &Tracker, who: ProcessId, function: Function, values: &Values) {
        let named = [values.pointer, values.data, values.object].contains(&Some(self.name));
        tracker.about(who, function, values, |id| {
            let shared = tracker.export(id);
            let by_data = shared.as_ref().is_some_and(|shared| shared.fingerprint == self.name);
            if let Some(shared) = shared.filter(|_| self.first.len() < NAMED)
                && !self.first.iter().any(|known| known.fingerprint == shared.fingerprint)
            {
                self.first.push(shared);
            }
            if by_data || named {
                self.by_address |= !by_data;
                self.found.insert(id);
            }
        });
    }
}

impl Search {
    fn known(self, analysis: &mut Analysis<'_>) -> KnownHandles {
        let text = self.first.into_iter().map(|Shared { fingerprint, kind, got, .. }| {
            let got = analysis.location(got);
            format!("{fingerprint:#x} ({}, got by {} at {})", kind.noun(), got.process(), since(got.time_ns))
        });
        KnownHandles(text.collect())
    }
}

impl Observer for Search {
    fn enter(&mut self, tracker: &Tracker, who: ProcessId, _: u64, enter: &Enter) {
        self.check(tracker, who, enter.function, &enter.values);
        // The enter record of a get has the address, and the exit record has the handle data.
        if enter.values.pointer == Some(self.name) || enter.values.object == Some(self.name) {
            let of_it = tracker.shared().into_iter().filter(|shared| shared.producer == who);
            for shared in of_it.filter(|shared| shared.value == Some(self.name)) {
                self.by_address |= shared.fingerprint != self.name;
                self.found.insert(shared.id);
            }
        }
    }

    fn exit(&mut self, tracker: &Tracker, who: ProcessId, _: u64, exit: &Exit) {
        self.check(tracker, who, exit.function, &exit.values);
    }
}

/// The exports that a history is about.
enum Which {
    /// All exports with these fingerprints.
    Fingerprints(BTreeSet<u64>),
    /// These exports.
    These(BTreeSet<ExportId>),
}

/// Collects the calls about some exports.
struct HistoryBuilder {
    of: Which,
    moments: Vec<RecordedCall>,
    /// The calls that have not returned: where each began, its inputs, and its index in `moments`.
    pending: HashMap<(ProcessId, u64), (Place, Values, Option<usize>)>,
}

struct RecordedCall {
    place: Place,
    fingerprint: u64,
    value: Option<u64>,
    result: Option<ResultCode>,
    took: Option<u64>,
}

impl RecordedCall {
    fn show(self, analysis: &mut Analysis<'_>) -> Moment {
        Moment {
            place: analysis.location(self.place),
            fingerprint: format!("{:#x}", self.fingerprint),
            value: self.value.map(|value| format!("{value:#x}")),
            result: self.place.function.zip(self.result).map(|(function, result)| result.text_of(function)),
            took_ns: self.took,
        }
    }
}

impl HistoryBuilder {
    fn new(of: Which) -> Self {
        Self { of, moments: Vec::new(), pending: HashMap::new() }
    }

    /// The calls, in the order of time.
    fn shown(self, analysis: &mut Analysis<'_>) -> Vec<Moment> {
        let mut moments: Vec<_> = self.moments.into_iter().map(|call| call.show(analysis)).collect();
        // The record of a delayed thread arrives late.
        moments.sort_by_key(|moment| moment.place.time_ns);
        moments
    }

    /// The fingerprint of the export that a call is about, if the history is about it.
    fn matching_fingerprint(
        &self,
        tracker: &Tracker,
        who: ProcessId,
        function: Function,
        values: &Values,
    ) -> Option<u64> {
        let mut bytes = None;
        tracker.about(who, function, values, |id| {
            let known = || tracker.export(id).map(|shared| shared.fingerprint);
            if bytes.is_none() {
                bytes = match &self.of {
                    Which::Fingerprints(words) => known().filter(|bytes| words.contains(bytes)),
                    Which::These(ids) => ids.contains(&id).then(known).flatten(),
                };
            }
        });
        bytes
    }
}

impl Observer for HistoryBuilder {
    fn enter(&mut self, tracker: &Tracker, who: ProcessId, _: u64, enter: &Enter) {
        let Enter { function, call, values, .. } = *enter;
        let place = Place::from_begun(who, &enter.begun(&enter.nulls()));
        let index = self.matching_fingerprint(tracker, who, function, &values).map(|fingerprint| {
            let value = values.subject();
            self.moments.push(RecordedCall { place, fingerprint, value, result: None, took: None });
            self.moments.len() - 1
        });
        if index.is_some() || function.is_ipc() {
            self.pending.insert((who, call), (place, values, index));
        }
    }

    fn exit(&mut self, tracker: &Tracker, who: ProcessId, _: u64, exit: &Exit) {
        let Some((place, inputs, index)) = self.pending.remove(&(who, exit.call)) else { return };
        let index = index.or_else(|| {
            let fingerprint = self.matching_fingerprint(tracker, who, exit.function, &exit.values)?;
            let born = inputs.pointer.and_then(|pointer| tracker.born(who, pointer));
            let born = born.filter(|_| exit.values.data.is_some());
            let fresh = born.filter(|born| !self.moments.iter().any(|call| call.place == *born));
            let result = Some(ResultCode::SUCCESS);
            let took = None;
            let value = inputs.subject();
            self.moments.extend(fresh.map(|place| RecordedCall { place, fingerprint, value, result, took }));
            self.moments.push(RecordedCall { place, fingerprint, value: None, result: None, took: None });
            Some(self.moments.len() - 1)
        });
        if let Some(call) = index.and_then(|index| self.moments.get_mut(index)) {
            call.value = exit.values.subject().or(call.value);
            call.result = Some(exit.result);
            call.took = Some(exit.time.0.saturating_sub(place.time.0));
        }
    }
}
