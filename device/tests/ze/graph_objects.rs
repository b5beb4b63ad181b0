//! Graphs as objects: drawings, numbers, callbacks at their end, and what the device says about them.

use std::ffi::CString;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::api::*;
use crate::graphs::{SIZE, begin, end, execute, fill, instantiate, wait_for};

#[test]
fn a_drawing_shows_commands_and_their_order() {
    let setup = Setup::new();
    let [list, child] = std::array::from_fn(|_| setup.immediate_list(2));
    let memory = setup.device_memory(SIZE);
    let [fork, join] = setup.events();
    let graph = make(|graph| zeGraphCreateExt(setup.context, null(), graph));
    let path = std::env::temp_dir().join(format!("urscope-graph-{}.dot", std::process::id()));
    let name = CString::new(path.to_str().unwrap()).unwrap();
    let dump = |mode: u32| {
        let desc = GraphDumpDesc { s_type: GraphDumpDesc::S_TYPE, mode, ..zeroed() };
        let result = zeGraphDumpContentsExt(graph, name.as_ptr(), (&raw const desc).cast());
        (result == SUCCESS).then(|| std::fs::read_to_string(&path).unwrap()).ok_or(result)
    };
    assert!(dump(0).unwrap().starts_with("digraph"));
    ok(zeCommandListBeginCaptureIntoGraphExt(list, graph, null()));
    ok(fill(list, memory, 0x5a, fork, &[]));
    ok(zeCommandListAppendBarrier(child, join, 1, &raw const fork));
    ok(wait_for(list, join));
    end(list);
    let detailed = dump(0).unwrap();
    let simple = dump(1).unwrap();
    let edges = ["command_0 -> command_1;", "command_0 -> command_2;", "command_1 -> command_2;"];
    for text in [&detailed, &simple] {
        assert!(edges.iter().all(|edge| text.contains(edge)), "{text}");
        assert_eq!(text.matches("->").count(), edges.len(), "{text}");
        assert!(text.contains("list 1") && text.contains("barrier"), "{text}");
    }
    let address = format!("{memory:?}");
    assert!(detailed.contains(&format!("fill\\n{SIZE} bytes\\nto {address}")), "{detailed}");
    assert!(simple.contains("\"fill\"") && !simple.contains(&address), "{simple}");
    ok(zeGraphDumpContentsExt(graph, name.as_ptr(), null()));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), detailed);
    assert_eq!(dump(2), Err(INVALID_ENUMERATION));
    let other = [0_u64; 2];
    assert_eq!(zeGraphDumpContentsExt(graph, name.as_ptr(), (&raw const other).cast()), UNSUPPORTED_FEATURE);
    assert_eq!(zeGraphDumpContentsExt(graph, null(), null()), INVALID_NULL_POINTER);
    let nowhere = CString::new(path.join("not-a-folder").to_str().unwrap()).unwrap();
    assert_eq!(zeGraphDumpContentsExt(graph, nowhere.as_ptr(), null()), UNKNOWN);
    std::fs::remove_file(path).unwrap();
}

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
