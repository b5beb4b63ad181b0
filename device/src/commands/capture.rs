//! What graphs record from immediate lists.
//!
//! Commands that are appended to a captured list become those of a graph and do not run. A list joins
//! the capture when it waits for an event that a recorded command signals (a fork). Before the capture
//! ends, its parent list must wait for it (a join; ze_api.h, `zeCommandListBeginGraphCaptureExt`). One
//! lock guards all captures; while there are none, an append reads a flag only. Must never record a
//! part of what was appended if the rest is refused, and never run anything.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::commands::stream::{Command, Wait};
use crate::commands::{graph::Graph, list::CommandList};
use crate::events::event::Event;
use crate::ffi::result::{Outcome, ZeResult};

/// The graphs that are being captured, by number.
static CAPTURES: Mutex<BTreeMap<u64, Arc<Graph>>> = Mutex::new(BTreeMap::new());

static IS_CAPTURING: AtomicBool = AtomicBool::new(false);

/// The commands that a graph has recorded, and the stage of its capture.
#[derive(Default)]
pub(super) struct CaptureState {
    pub stage: Stage,
    /// The recorded commands, in the order of the appends.
    pub commands: Vec<Arc<Command>>,
    /// The lists that take part. The first one is where the capture began.
    branches: Vec<Branch>,
    /// The queue group of that list.
    pub ordinal: u32,
    /// The last recorded signal of each event, by the event's address. Empty when the capture has ended.
    signals: BTreeMap<usize, Signalled>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not captured yet.
    #[default]
    New,
    Capturing,
    /// Captured: it can be instantiated.
    Complete,
    /// Not usable: a fork was not joined, or the list of the capture was destroyed.
    Invalid,
}

/// A list that takes part in a capture.
struct Branch {
    list: Weak<CommandList>,
    /// The number of the list that it was forked from.
    parent: Option<usize>,
    /// The position of its last command that counts as work.
    last_work: Option<usize>,
    /// The position of the last signal of it that its parent has waited for.
    joined: Option<usize>,
}

/// A recorded signal.
struct Signalled {
    event: Arc<Event>,
    branch: usize,
    position: usize,
}

/// Begins to capture a list: `INVALID_ARGUMENT` for a list that is captured, synchronous or not
/// immediate, and for a graph that is not empty.
pub(super) fn begin(list: &Arc<CommandList>, graph: &Arc<Graph>) -> Outcome {
    let mut captures = CAPTURES.lock();
    let mut state = graph.state.lock();
    let is_ready = matches!(state.stage, Stage::New | Stage::Complete) && state.commands.is_empty();
    if list.capture() != 0 || !list.can_be_captured() || !is_ready {
        return Err(ZeResult::INVALID_ARGUMENT);
    }
    state.stage = Stage::Capturing;
    state.branches = vec![Branch::new(list, None)];
    state.ordinal = list.ordinal;
    list.set_capture(graph.number);
    captures.insert(graph.number, Arc::clone(graph));
    IS_CAPTURING.store(true, Ordering::Release);
    Ok(())
}

/// Records commands that are appended to a list, all or none. False if they are not a part of a
/// capture. `GRAPH_CAPTURE_MERGE_ATTEMPT` if they wait for events of two captures,
/// `INVALID_COMMAND_LIST_TYPE` if the list cannot be captured but waits for a recorded event,
/// `GRAPH_INTERNAL_EVENT` if they signal an event that belongs to another capture.
pub(super) fn record(list: &Arc<CommandList>, commands: &[Arc<Command>]) -> Outcome<bool> {
    if !IS_CAPTURING.load(Ordering::Acquire) {
        return Ok(false);
    }
    let captures = CAPTURES.lock();
    let mut number = list.capture();
    for wait in commands.iter().flat_map(|command| &command.waits) {
        match wait.event.capture() {
            0 => {}
            _ if !list.can_be_captured() => return Err(ZeResult::INVALID_COMMAND_LIST_TYPE),
            other if number == 0 => number = other,
            other if number != other => return Err(ZeResult::GRAPH_CAPTURE_MERGE_ATTEMPT),
            _ => {}
        }
    }
    for event in commands.iter().filter_map(|command| command.signals.as_ref()) {
        if ![0, number].contains(&event.capture()) && event.is_internal_to_graphs() {
            return Err(ZeResult::GRAPH_INTERNAL_EVENT);
        }
    }
    let Some(graph) = captures.get(&number) else { return Ok(false) };
    graph.state.lock().record(number, list, commands);
    Ok(true)
}

/// Ends the capture that began with a list, and returns its graph: `COMMAND_LIST_NOT_CAPTURING` if there is none,
/// `INVALID_ARGUMENT` if it began with another list. The graph is invalid if a fork was not joined.
pub(super) fn end(list: &Arc<CommandList>) -> Outcome<Arc<Graph>> {
    let mut captures = CAPTURES.lock();
    let graph = captures.get(&list.capture()).map(Arc::clone).ok_or(ZeResult::COMMAND_LIST_NOT_CAPTURING)?;
    let mut state = graph.state.lock();
    if state.branch_of(list) != Some(0) {
        return Err(ZeResult::INVALID_ARGUMENT);
    }
    let stage = if state.is_joined() { Stage::Complete } else { Stage::Invalid };
    state.end(&mut captures, graph.number, stage);
    drop(state);
    Ok(graph)
}

/// Ends the capture of a graph that is destroyed, if it records.
pub(super) fn forget(graph: &Graph) {
    let mut captures = CAPTURES.lock();
    if captures.contains_key(&graph.number) {
        graph.state.lock().end(&mut captures, graph.number, Stage::Invalid);
    }
}

/// Handles the destruction of a list. If a capture began with it, ends the capture and returns its graph.
pub(super) fn leave(list: &Arc<CommandList>) -> Option<Arc<Graph>> {
    if list.capture() == 0 {
        return None;
    }
    let mut captures = CAPTURES.lock();
    let graph = captures.get(&list.capture()).map(Arc::clone)?;
    let mut state = graph.state.lock();
    if state.branch_of(list) != Some(0) {
        return None;
    }
    state.end(&mut captures, graph.number, Stage::Invalid);
    drop(state);
    Some(graph)
}

/// The graph that records a list.
pub(super) fn graph_of(list: &CommandList) -> Option<Arc<Graph>> {
    CAPTURES.lock().get(&list.capture()).map(Arc::clone)
}

impl CaptureState {
    /// The list where the capture began, unless it was destroyed.
    pub(super) fn primary(&self) -> Option<Arc<CommandList>> {
        self.branches.first()?.list.upgrade()
    }

    /// The number of a list. A list that is alive is not mistaken for one that was destroyed: the weak
    /// reference keeps its address.
    fn branch_of(&self, list: &Arc<CommandList>) -> Option<usize> {
        self.branches.iter().position(|branch| branch.list.as_ptr() == Arc::as_ptr(list))
    }

    fn signal_of(&self, event: &Arc<Event>) -> Option<&Signalled> {
        self.signals.get(&(Arc::as_ptr(event) as usize))
    }

    /// Records commands of a list that takes part or waits for one that does.
    fn record(&mut self, number: u64, list: &Arc<CommandList>, commands: &[Arc<Command>]) {
        let waited = || commands.iter().flat_map(|command| &command.waits);
        let branch = self.branch_of(list).unwrap_or_else(|| {
            let parent = waited().find_map(|wait| self.signal_of(&wait.event)).map(|signal| signal.branch);
            self.branches.push(Branch::new(list, parent));
            list.set_capture(number);
            self.branches.len() - 1
        });
        for command in commands {
            let position = self.commands.len();
            let signals: Vec<_> = command.waits.iter().filter_map(|wait| self.signal_of(&wait.event)).collect();
            let signals: Vec<_> = signals.into_iter().map(|signal| (signal.branch, signal.position)).collect();
            for (other, signalled) in signals {
                if let Some(child) = self.branches.get_mut(other).filter(|child| child.parent == Some(branch)) {
                    child.joined = child.joined.max(Some(signalled));
                }
            }
            let command = self.with_fixed_waits(command);
            if command.work.counts_as_work()
                && let Some(own) = self.branches.get_mut(branch)
            {
                own.last_work = Some(position);
            }
            if let Some(event) = &command.signals {
                event.begin_capture(number);
                let signalled = Signalled { event: Arc::clone(event), branch, position };
                self.signals.insert(Arc::as_ptr(event) as usize, signalled);
            }
            self.commands.push(command);
        }
    }

    /// The command with fixed values to wait for, for counter-based events that no recorded command
    /// signals: the application may use such an event for something else when the graph runs.
    fn with_fixed_waits(&self, command: &Arc<Command>) -> Arc<Command> {
        let is_older = |wait: &Wait| wait.event.is_internal_to_graphs() && self.signal_of(&wait.event).is_none();
        if !command.waits.iter().any(is_older) {
            return Arc::clone(command);
        }
        let fixed = |wait: &Wait| match wait.value {
            None if is_older(wait) => Wait { value: Some(wait.event.signal.submit_wait()), ..wait.clone() },
            _ => wait.clone(),
        };
        let waits = command.waits.iter().map(fixed).collect();
        Arc::new(Command { work: command.work.clone(), waits, signals: command.signals.clone() })
    }

    /// Whether each list but the first one was joined, and has appended no work since.
    fn is_joined(&self) -> bool {
        self.branches.iter().skip(1).all(|branch| branch.joined.is_some() && branch.last_work <= branch.joined)
    }

    fn end(&mut self, captures: &mut BTreeMap<u64, Arc<Graph>>, number: u64, stage: Stage) {
        self.stage = stage;
        for list in self.branches.iter().filter_map(|branch| branch.list.upgrade()) {
            list.set_capture(0);
        }
        for signal in std::mem::take(&mut self.signals).into_values() {
            // The command holds the event, too, so this is not its end.
            signal.event.end_capture(number);
        }
        captures.remove(&number);
        IS_CAPTURING.store(!captures.is_empty(), Ordering::Release);
    }
}

impl Branch {
    fn new(list: &Arc<CommandList>, parent: Option<usize>) -> Self {
        Self { list: Arc::downgrade(list), parent, last_work: None, joined: None }
    }
}
