//! Mistakes with physical memory and events.

use super::super::draft::{Draft, Id, Node};
use super::super::mistake::Mistake;
use super::super::sharing::{Got, Sharing};

/// Plants one of these mistakes. Returns false for another one.
pub(super) fn plant(draft: &mut Draft, sharing: &Sharing, mistake: Mistake) -> bool {
    let opening = &sharing.openings[0];
    let Got { get, put, .. } = *sharing.last_got();
    match mistake {
        Mistake::LeakedPhysicalHandle => {
            draft.remove(put);
            draft.remove(sharing.end);
            draft.expect("warning leaked-handle", Some(get), None);
        }
        Mistake::LeakedPhysicalMemory => {
            draft.remove(opening.close);
            draft.expect("warning leaked-physical-memory", Some(opening.open), sharing.gets());
        }
        Mistake::PhysicalDoublePut => {
            let handle = sharing.last_got().handle;
            let owner = sharing.owner;
            let again = draft.add(owner.process, sharing.kind.put(handle, owner.context), &[put]);
            draft.glue(put, again);
            draft.refusable(again);
            draft.expect("error double-put", Some(again), Some(put));
        }
        Mistake::PhysicalUseAfterPut => {
            draft.release(opening.open, put);
            // Something else may get the number of the descriptor that the put closes.
            draft.glue(put, opening.open);
            draft.refusable(opening.open);
            opening.uses.iter().chain([&opening.close]).for_each(|step| draft.remove(*step));
            draft.expect("error use-after-put", Some(opening.open), Some(put));
        }
        Mistake::PhysicalFreedBeforePut => {
            draft.release(put, sharing.end);
            draft.order(sharing.end, put);
            for opening in &sharing.openings {
                draft.order(opening.open, sharing.end);
            }
            draft.expect("note freed-while-exported", Some(sharing.end), Some(get));
        }
        Mistake::RefusedGet => {
            let object = sharing.object;
            let owner = sharing.owner;
            let range = draft.register();
            let handle = draft.register();
            let is_other = |node: &Node| node.process == owner.process && node.step == format!("unmap v{object}");
            let other = draft.nodes.iter().position(is_other).map(Id);
            let after: Vec<Id> = other.into_iter().chain([sharing.make]).collect();
            let map = draft.add(owner.process, format!("map m{object} -> v{range} in c{}", owner.context), &after);
            let wrong = draft.add(owner.process, format!("get v{range} -> h{handle} in c{}", owner.context), &[map]);
            draft.refusable(wrong);
            let unmap = draft.add(owner.process, format!("unmap v{range}"), &[wrong]);
            draft.order(unmap, sharing.end);
            draft.expect("note refused-call", Some(wrong), Some(map));
        }
        Mistake::LeakedEvent => {
            draft.remove(opening.close);
            draft.expect("warning leaked-event", Some(opening.open), sharing.gets());
        }
        Mistake::LeakedEventHandle => {
            draft.remove(put);
            draft.remove(sharing.end);
            draft.expect("note leaked-handle", Some(get), None);
        }
        _ => return false,
    }
    true
}
