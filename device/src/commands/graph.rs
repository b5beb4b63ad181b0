//! Graphs, executable graphs, and the entry points about them.
//!
//! A graph holds the commands that were recorded from immediate lists (`capture`). An executable graph is a copy of
//! these commands. A list executes it like a regular list: in recording order, also across several lists, with no other
//! command between them. So each command comes after those that it depends on. Each copy has its own instances of the
//! counter-based events that belong to the graph. Must never change a copy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use crate::commands::capture::{self, CaptureState, Stage};
use crate::commands::stream::{Command, Wait};
use crate::commands::{append::events, list::CommandList};
use crate::discovery::context::Context;
use crate::events::event::Event;
use crate::ffi::handles::{Handle, object};
use crate::ffi::layout::Base;
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown};
use crate::ffi::{Argument, HostFunction, In, Out, UserData};

/// The number of the latest graph.
static LATEST: AtomicU64 = AtomicU64::new(0);

/// The object of a `ze_graph_handle_t`.
pub struct Graph {
    /// Its number in this process, from 1 on.
    pub(super) number: u64,
    /// What it has recorded.
    pub(super) state: Mutex<CaptureState>,
    /// Whether a capture created it: then the application gets the graph when the capture ends.
    is_of_capture: bool,
    callbacks: Mutex<Vec<(HostFunction, UserData)>>,
}

/// The object of a `ze_executable_graph_handle_t`.
pub struct ExecutableGraph {
    source: Arc<Graph>,
    /// The queue group of the list where the capture began.
    ordinal: u32,
    commands: Vec<Arc<Command>>,
    /// Signalled by each execution at its end. The next one waits for it.
    executed: Arc<Event>,
    /// Held while an execution is submitted, so that no two wait for the same one.
    submission: Mutex<()>,
}

object!(Graph);
object!(ExecutableGraph);

impl Graph {
    fn new(is_of_capture: bool) -> Arc<Self> {
        let number = LATEST.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(Self { number, state: Mutex::default(), is_of_capture, callbacks: Mutex::default() })
    }

    /// Tells the application that the graph is destroyed.
    fn call_back(&self) {
        let callbacks = std::mem::take(&mut *self.callbacks.lock());
        for (function, data) in callbacks {
            function.call(data);
        }
    }
}

/// `zeGraphCreateExt` (ze_api.h). No extension is known here and below: `UNSUPPORTED_FEATURE` for any.
pub extern "C" fn create(context: Handle<Context>, extensions: In<Base>, graph: Out<Handle<Graph>>) -> ZeResult {
    call(|| {
        context.get()?;
        extensions.check_no_extension()?;
        graph.check()?;
        graph.write(Handle::register(Graph::new(false)))
    })
}

/// `zeCommandListBeginGraphCaptureExt` (ze_api.h). Errors of [`capture::begin`].
pub extern "C" fn begin_capture(list: Handle<CommandList>, extensions: In<Base>) -> ZeResult {
    call(|| {
        let list = list.get()?;
        extensions.check_no_extension()?;
        let graph = Graph::new(true);
        capture::begin(&list, &graph)?;
        Handle::register(graph);
        Ok(())
    })
}

/// `zeCommandListBeginCaptureIntoGraphExt` (ze_api.h). Errors of [`capture::begin`].
pub extern "C" fn begin_capture_into(
    list: Handle<CommandList>,
    graph: Handle<Graph>,
    extensions: In<Base>,
) -> ZeResult {
    call(|| {
        let list = list.get()?;
        let graph = graph.get()?;
        extensions.check_no_extension()?;
        capture::begin(&list, &graph)
    })
}

/// `zeCommandListIsGraphCaptureEnabledExt` (ze_api.h): `QUERY_TRUE` or `QUERY_FALSE`.
pub extern "C" fn is_capture_enabled(list: Handle<CommandList>) -> ZeResult {
    call(|| answer(list.get()?.capture() != 0))
}

/// `zeCommandListEndGraphCaptureExt` (ze_api.h). `COMMAND_LIST_NOT_CAPTURING`, `INVALID_ARGUMENT` for a
/// list that was forked, and `GRAPH_UNJOINED_FORKS`. With the last one, the capture has ended, too, and
/// the caller gets the graph, to destroy it.
pub extern "C" fn end_capture(list: Handle<CommandList>, extensions: In<Base>, graph: Out<Handle<Graph>>) -> ZeResult {
    call(|| {
        let list = list.get()?;
        extensions.check_no_extension()?;
        graph.check()?;
        let ended = capture::end(&list)?;
        graph.write(Handle::from_object(&ended))?;
        if ended.state.lock().stage == Stage::Invalid {
            return Err(ZeResult::GRAPH_UNJOINED_FORKS);
        }
        Ok(())
    })
}

/// `zeCommandListGetGraphExt` (ze_api.h). NULL and `COMMAND_LIST_NOT_CAPTURING` for a list that is not captured.
pub extern "C" fn of_list(list: Handle<CommandList>, graph: Out<Handle<Graph>>) -> ZeResult {
    call(|| {
        let found = capture::graph_of(&*list.get()?);
        graph.write(found.as_ref().map_or(Handle::NULL, Handle::from_object))?;
        found.map(drop).ok_or(ZeResult::COMMAND_LIST_NOT_CAPTURING)
    })
}

/// `zeGraphGetPrimaryCommandListExt` (ze_api.h). `INVALID_ARGUMENT` for a graph that was not captured,
/// or whose list was destroyed.
pub extern "C" fn get_primary_list(graph: Handle<Graph>, list: Out<Handle<CommandList>>) -> ZeResult {
    call(|| {
        let primary = graph.get()?.state.lock().primary().ok_or(ZeResult::INVALID_ARGUMENT)?;
        let handle = Handle::from_object(&primary);
        handle.get()?;
        list.write(handle)
    })
}

/// `zeGraphSetDestructionCallbackExt` (ze_api.h).
pub extern "C" fn set_destruction_callback(
    graph: Handle<Graph>,
    function: HostFunction,
    data: UserData,
    extensions: In<Base>,
) -> ZeResult {
    call(|| {
        let graph = graph.get()?;
        function.check()?;
        extensions.check_no_extension()?;
        graph.callbacks.lock().push((function, data));
        Ok(())
    })
}

/// `zeGraphInstantiateExt` (ze_api.h). `INVALID_ARGUMENT` for a graph that was not captured or still
/// is, `INVALID_GRAPH` for one with a fork that was not joined.
pub extern "C" fn instantiate(
    graph: Handle<Graph>,
    extensions: In<Base>,
    executable: Out<Handle<ExecutableGraph>>,
) -> ZeResult {
    call(|| {
        let source = graph.get()?;
        extensions.check_no_extension()?;
        executable.check()?;
        let state = source.state.lock();
        match state.stage {
            Stage::Complete => {}
            Stage::Invalid => return Err(ZeResult::INVALID_GRAPH),
            Stage::New | Stage::Capturing => return Err(ZeResult::INVALID_ARGUMENT),
        }
        let commands = with_own_events(state.commands.iter());
        let ordinal = state.ordinal;
        drop(state);
        let executed = Arc::new(Event::counter());
        let made = ExecutableGraph { source, ordinal, commands, executed, submission: Mutex::default() };
        executable.write(Handle::register(Arc::new(made)))
    })
}

/// The commands, with other events in place of the counter-based ones that belong to the graph.
fn with_own_events<'a>(commands: impl Iterator<Item = &'a Arc<Command>>) -> Vec<Arc<Command>> {
    let mut own = BTreeMap::<usize, Arc<Event>>::new();
    let key = |event: &Arc<Event>| Arc::as_ptr(event) as usize;
    let mut copies = Vec::new();
    for Command { work, waits, signals } in commands.map(Arc::as_ref) {
        let current = |event: &Arc<Event>| Arc::clone(own.get(&key(event)).unwrap_or(event));
        let work = work.with_events(current);
        let wait = |wait: &Wait| match wait.value {
            None => Wait { event: current(&wait.event), value: None },
            Some(_) => wait.clone(),
        };
        let waits = waits.iter().map(wait).collect();
        let signals = signals.as_ref().map(|event| {
            if !event.is_internal_to_graphs() {
                return Arc::clone(event);
            }
            Arc::clone(own.entry(key(event)).or_insert_with(|| Arc::new(event.private_copy())))
        });
        copies.push(Arc::new(Command { work, waits, signals }));
    }
    copies
}

/// `zeCommandListAppendGraphExt` (ze_api.h). Waits before the first command and signals after the last.
/// A list that is captured records the commands. `INVALID_COMMAND_LIST_TYPE` unless it is an
/// asynchronous immediate list of the queue group where the capture began.
pub extern "C" fn append(
    list: Handle<CommandList>,
    graph: Handle<ExecutableGraph>,
    extensions: In<Base>,
    signal: Handle<Event>,
    wait_count: Argument<u32>,
    waits: In<Handle<Event>>,
) -> ZeResult {
    call(|| {
        let list = list.get()?;
        let graph = graph.get()?;
        extensions.check_no_extension()?;
        let (mut waits, signals) = events(signal, wait_count, waits)?;
        if !list.can_be_captured() || list.ordinal != graph.ordinal {
            return Err(ZeResult::INVALID_COMMAND_LIST_TYPE);
        }
        let around = |first: Command, end: Vec<Command>| {
            let own = graph.commands.iter().map(Arc::clone);
            std::iter::once(Arc::new(first)).chain(own).chain(end.into_iter().map(Arc::new)).collect::<Vec<_>>()
        };
        let end = Command::signalling(signals.clone());
        if capture::record(&list, &around(Command::waiting(waits.clone()), vec![end]))? {
            return Ok(());
        }
        let _submission = graph.submission.lock();
        waits.extend(Wait::all([Arc::clone(&graph.executed)]));
        let executed = Command::signalling(Some(Arc::clone(&graph.executed)));
        list.append_now(&around(Command::waiting(waits), vec![Command::signalling(signals), executed]))
    })
}

/// `zeExecutableGraphGetSourceGraphExt` (ze_api.h). `INVALID_ARGUMENT` if the graph was destroyed.
pub extern "C" fn get_source(executable: Handle<ExecutableGraph>, graph: Out<Handle<Graph>>) -> ZeResult {
    call(|| {
        let handle = Handle::from_object(&executable.get()?.source);
        handle.get()?;
        graph.write(handle)
    })
}

/// `zeGraphIsEmptyExt` (ze_api.h): `QUERY_TRUE` or `QUERY_FALSE`, or `INVALID_GRAPH` for one with a
/// fork that was not joined.
pub extern "C" fn is_empty(graph: Handle<Graph>) -> ZeResult {
    call(|| {
        let graph = graph.get()?;
        let state = graph.state.lock();
        if state.stage == Stage::Invalid { Err(ZeResult::INVALID_GRAPH) } else { answer(state.commands.is_empty()) }
    })
}

/// `zeGraphGetIdExt`, which is not in ze_api.h and which the v2 adapter looks for: a number that grows
/// with each graph of the process.
pub extern "C" fn get_id(graph: Handle<Graph>, id: Out<u64>) -> ZeResult {
    call(|| id.write(graph.get()?.number))
}

/// `zeExecutableGraphDestroyExt` (ze_api.h). What was appended still completes.
pub extern "C" fn destroy_executable(graph: Handle<ExecutableGraph>) -> ZeResult {
    call_teardown(|| graph.retire().map(drop))
}

/// `zeGraphDestroyExt` (ze_api.h). Executable graphs stay as they are. If the graph still records, the capture ends.
pub extern "C" fn destroy(graph: Handle<Graph>) -> ZeResult {
    call_teardown(|| {
        let graph = graph.retire()?;
        capture::forget(&graph);
        graph.call_back();
        Ok(())
    })
}

/// Destroys a graph that a capture created, if the capture ended before the application got the graph.
pub(super) fn abandon(graph: &Arc<Graph>) {
    if graph.is_of_capture && Handle::from_object(graph).retire().is_ok() {
        graph.call_back();
    }
}

fn answer(yes: bool) -> Outcome {
    Err(if yes { ZeResult::QUERY_TRUE } else { ZeResult::QUERY_FALSE })
}
