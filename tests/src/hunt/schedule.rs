//! Gives the steps of a draft an order, at random among those that are allowed, and writes the script.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::draft::{Draft, Id, Node};

/// The script of a draft, and the lines of its steps.
pub(super) fn script(draft: &mut Draft) -> (String, BTreeMap<Id, usize>) {
    pass_on_what_was_removed(draft);
    let mut text = String::new();
    let mut lines = BTreeMap::new();
    let mut done = vec![false; draft.nodes.len()];
    let mut next = None;
    loop {
        let ready: Vec<Id> = (0..draft.nodes.len())
            .map(Id)
            .filter(|id| !done[id.0] && !draft.nodes[id.0].removed)
            .filter(|id| draft.nodes[id.0].after.iter().all(|earlier| done[earlier.0]))
            .collect();
        if ready.is_empty() {
            break;
        }
        let first = next.unwrap_or_else(|| draft.random.choose(&ready));
        assert!(ready.contains(&first), "a step is glued to one that is not ready: {:?}", draft.nodes[first.0]);
        next = draft.nodes[first.0].glued;
        for (index, id) in together(draft, first, &ready).into_iter().enumerate() {
            done[id.0] = true;
            lines.insert(id, line(&mut text, &draft.nodes[id.0], index > 0));
        }
    }
    let left: Vec<&Node> =
        draft.nodes.iter().zip(&done).filter(|(node, done)| !*done && !node.removed).map(|it| it.0).collect();
    assert!(left.is_empty(), "these steps wait for each other, behind {text}{left:#?}");
    (text, lines)
}

/// Steps that run at the same time: of different threads, and ready before any of them is done, so independent.
fn together(draft: &mut Draft, first: Id, ready: &[Id]) -> Vec<Id> {
    let mut group = vec![first];
    if draft.nodes[first.0].alone || !draft.random.one_in(draft.concurrency) {
        return group;
    }
    for id in ready {
        let node = &draft.nodes[id.0];
        let is_free = group.iter().all(|other| {
            let other = &draft.nodes[other.0];
            (other.process, other.thread) != (node.process, node.thread)
        });
        if !node.alone && is_free && group.len() < 6 && draft.random.one_in(2) {
            group.push(*id);
        }
    }
    group
}

/// Writes a step, and returns its line. A step of several lines happens again and again.
fn line(text: &mut String, node: &Node, joins: bool) -> usize {
    let thread = if node.thread == 0 { String::new() } else { format!("/{}", node.thread + 1) };
    let who = format!("{}p{}{thread}: ", if joins { "& " } else { "" }, node.process);
    let first = text.lines().count() + 1;
    if let Some((times, steps)) = node.step.split_once(" times\n") {
        let steps: Vec<String> = steps.lines().map(|step| format!("{who}{step}\n")).collect();
        write!(text, "{times} times\n{}end\n", steps.concat()).expect("a string takes all");
        return first + 1;
    }
    writeln!(text, "{who}{}", node.step).expect("a string takes all");
    first
}

fn pass_on_what_was_removed(draft: &mut Draft) {
    for index in 0..draft.nodes.len() {
        let mut seen = BTreeSet::new();
        let mut open = draft.nodes[index].after.clone();
        let mut after = Vec::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let earlier = &draft.nodes[id.0];
            if earlier.removed { open.extend(&earlier.after) } else { after.push(id) }
        }
        draft.nodes[index].after = after;
    }
}
