//! Graphs as objects: numbers, callbacks at their end, and what the device says about them.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::api::*;
use crate::graphs::{begin, end, execute, instantiate};

extern "C" fn count(data: *mut c_void) {
    // SAFETY: the tests pass a counter that outlives the graph.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn callbacks_are_called_once_when_a_graph_is_destroyed() {
    let (_, list) = Setup::with_list(2);
    let counter = AtomicU32::new(0);
    let data = (&raw const counter).cast_mut().cast();
    let mut numbers = Vec::new();
    for made in 0..4 {
        begin(list);
        let graph = make(|graph| zeCommandListGetGraphExt(list, graph));
        ok(zeGraphSetDestructionCallbackExt(graph, Some(count), data, null()));
        ok(zeGraphSetDestructionCallbackExt(end(list), Some(count), data, null()));
        assert_eq!(zeGraphSetDestructionCallbackExt(graph, None, data, null()), INVALID_ARGUMENT);
        let executable = instantiate(graph);
        let number = value(|out| zeGraphGetIdExt(graph, out));
        numbers.push(number);
        assert_eq!(counter.load(Ordering::Relaxed), 2 * made);
        ok(zeGraphDestroyExt(graph));
        assert_eq!(counter.load(Ordering::Relaxed), 2 * (made + 1));
        // An empty graph can be executed.
        execute(list, executable);
        ok(zeExecutableGraphDestroyExt(executable));
    }
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
}

#[test]
fn the_device_says_which_graphs_it_supports() {
    let setup = Setup::new();
    let mut graphs = GraphProperties { s_type: GraphProperties::S_TYPE, ..zeroed() };
    let mut properties = DeviceProperties { p_next: (&raw mut graphs).cast(), ..zeroed() };
    ok(zeDeviceGetProperties(setup.device, &raw mut properties));
    // All but graphs that can be changed.
    assert_eq!(graphs.flags, 0b1_1101);
}
