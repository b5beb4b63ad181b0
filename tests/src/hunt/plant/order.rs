//! Right calls in the wrong order between the processes.

use super::super::Stage;
use super::super::draft::{Draft, Id};
use super::super::mistake::Mistake;
use super::super::sharing::{Kind, Sharing};
use super::open_after;

/// Plants one of these mistakes. Returns false for another one.
pub(super) fn plant(draft: &mut Draft, sharing: &Sharing, mistake: Mistake) -> bool {
    let opening = &sharing.openings[0];
    let end = sharing.end;
    match mistake {
        Mistake::FreedWhileOpen | Mistake::QueuedFreeWhileOpen => {
            draft.release(opening.close, end);
            draft.order(opening.open, end);
            opening.uses.iter().for_each(|step| draft.order(*step, end));
            draft.order(end, opening.close);
            draft.expect("error freed-while-open", Some(end), Some(opening.open));
        }
        Mistake::PoolDroppedWhileOpen => {
            let drop = sharing.pool_end.expect("the memory is of a pool");
            draft.remove(end);
            draft.release(opening.close, end);
            draft.order(opening.open, drop);
            opening.uses.iter().for_each(|step| draft.order(*step, drop));
            draft.order(drop, opening.close);
            draft.expect("error freed-while-open", Some(drop), Some(opening.open));
        }
        Mistake::UseAfterPut => {
            // The put of what was sent is the last, whether the bytes of several gets are equal or not.
            let put = sharing.got[0].put;
            for got in &sharing.got {
                draft.release(opening.open, got.put);
                draft.order(got.put, opening.open);
            }
            for got in sharing.got.iter().skip(1) {
                draft.order(got.put, put);
            }
            keep_handle(draft, opening.open);
            // The put closes the descriptor that a handle of Level Zero names.
            if draft.stage.is_ours() || sharing.kind == Kind::Raw {
                draft.refusable(opening.open);
                opening.uses.iter().chain([&opening.close]).for_each(|step| draft.remove(*step));
                draft.expect("error use-after-put", Some(opening.open), Some(put));
            } else {
                draft.expect("warning use-after-put", Some(opening.open), Some(put));
            }
        }
        Mistake::UseAfterFree => {
            open_after(draft, sharing, end);
            keep_handle(draft, opening.open);
            // The adapter keeps pooled memory, and opens it.
            if sharing.kind != Kind::Pooled || draft.stage.is_ours() {
                draft.refusable(opening.open);
                draft.remove(opening.close);
            }
            // Other memory that takes the address makes it another mistake.
            draft.glue(end, opening.open);
            draft.expect("error use-after-free", Some(opening.open), Some(end));
            if sharing.kind == Kind::Unpooled && draft.stage == Stage::V1 {
                draft.without_result(opening.open);
                draft.expect("error success-without-result", Some(opening.open), None);
            }
        }
        Mistake::StaleHandle => {
            // No other memory has this size, so the pool has one candidate.
            let process = sharing.owner.process;
            let context = sharing.owner.context;
            let object = sharing.object;
            let step = format!("alloc m{object} {} in c{context}", 1 << 20);
            draft.nodes[sharing.make.0].step.clone_from(&step);
            // The same name: it must have the same address.
            let other = draft.add(process, step, &[end]);
            draft.glue(end, other);
            open_after(draft, sharing, other);
            let release = draft.add(process, format!("free m{object} in c{context}"), &[other, opening.open]);
            if draft.stage.is_ours() {
                draft.refusable(opening.open);
                draft.remove(opening.close);
            } else {
                draft.order(opening.close, release);
            }
            draft.expect("error stale-handle", Some(opening.open), Some(other));
        }
        Mistake::OwnerEnds => {
            draft.release(opening.close, end);
            draft.remove(end);
            draft.after_end(opening.close, sharing.owner.process);
            for other in sharing.openings.iter().skip(1) {
                sharing.got.iter().for_each(|got| draft.order(other.close, got.put));
            }
            draft.expect("note exporter-gone", None, Some(opening.open));
        }
        _ => return false,
    }
    if mistake != Mistake::OwnerEnds {
        sharing.others_end_before(draft, end);
    }
    true
}

/// The opener leaves the handle as it is: it cannot get a descriptor that is closed.
fn keep_handle(draft: &mut Draft, open: Id) {
    let step = &mut draft.nodes[open.0].step;
    *step = step.replace(" replaced", "");
}
