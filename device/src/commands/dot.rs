//! A drawing of a graph in the language DOT: a box for each recorded command, in a frame for each list.
//!
//! Must never end a label early, whatever the names of kernels are.

use std::fmt::Write as _;

use crate::commands::capture::{CaptureState, Node};
use crate::commands::stream::Command;

/// The text of the file. With `details`, boxes have addresses, sizes and the arguments of kernels.
pub(super) fn drawing(number: u64, state: &CaptureState, details: bool) -> String {
    let mut text = format!("digraph graph_{number} {{\n  node [shape=box];\n");
    // Writing to a string does not fail.
    for branch in 0..state.branch_count() {
        let _ = writeln!(text, "  subgraph cluster_{branch} {{\n    label=\"list {branch}\";");
        for (position, node) in state.nodes.iter().enumerate().filter(|(_, node)| node.branch == branch) {
            let _ = writeln!(text, "    command_{position} [label=\"{}\"];", label(node, details));
        }
        text.push_str("  }\n");
    }
    for (position, node) in state.nodes.iter().enumerate() {
        for before in &node.after {
            let _ = writeln!(text, "  command_{before} -> command_{position};");
        }
    }
    text.push_str("}\n");
    text
}

fn label(node: &Node, details: bool) -> String {
    let Command { work, waits, signals } = node.command.as_ref();
    let description = work.description(details).unwrap_or_else(|| {
        let what = match (waits.is_empty(), signals) {
            (true, Some(_)) => "signal of an event",
            (false, None) => "wait for events",
            _ => "barrier",
        };
        what.to_owned()
    });
    description.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
