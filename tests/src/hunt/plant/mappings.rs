//! Mistakes with a mapping.

use super::super::draft::{Draft, Id};
use super::super::mistake::Mistake;
use super::super::sharing::{Kind, Opening, Sharing};
use super::between;

/// Plants one of these mistakes. Returns false for another one.
pub(super) fn plant(draft: &mut Draft, sharing: &Sharing, mistake: Mistake) -> bool {
    let opening = &sharing.openings[0];
    let Opening { place, object, open, close, .. } = *opening;
    let process = place.process;
    let context = place.context;
    match mistake {
        Mistake::LeakedMapping | Mistake::KilledHolder => {
            draft.remove(close);
            draft.after_end(sharing.end, process);
            if mistake == Mistake::KilledHolder {
                draft.kill(process);
                let finding = match sharing.kind {
                    Kind::Physical => "note leaked-physical-memory",
                    Kind::Event => "note leaked-event",
                    _ => "note leaked-mapping",
                };
                draft.expect(finding, Some(open), sharing.gets());
                if finding == "note leaked-mapping" {
                    // Nobody may have seen when the process was gone.
                    draft.expect("note freed-while-open", Some(sharing.end), Some(open));
                    draft.anywhere();
                    draft.optional();
                }
            } else {
                // Level Zero asks for less than SYCL.
                let severity = if sharing.kind == Kind::Raw { "note" } else { "warning" };
                draft.expect(&format!("{severity} leaked-mapping"), Some(open), sharing.gets());
            }
        }
        Mistake::DoubleClose => {
            let step = format!("close m{object} in c{context}{}", sharing.kind.by());
            let again = draft.add(process, step, &[close]);
            // Another mapping may get the address.
            draft.glue(close, again);
            draft.refusable(again);
            draft.order(again, sharing.end);
            draft.expect("error double-close", Some(again), Some(close));
        }
        Mistake::ClosedOnceOfTwo | Mistake::ClosedThriceOfTwo => {
            let mut sharing = sharing.clone();
            sharing.open(draft, place, None);
            let second = sharing.openings.last().expect("it was just added").clone();
            // Both may be the same pointer, so each close may be that of either open.
            for (open, close) in [(open, second.close), (second.open, close)] {
                draft.order(open, close);
            }
            if mistake == Mistake::ClosedOnceOfTwo {
                draft.remove(second.close);
                draft.after_end(sharing.end, process);
                draft.expect("warning leaked-mapping", [open, second.open], sharing.gets());
            } else {
                let third = draft.add(process, format!("close m{object} in c{context}"), &[close]);
                draft.order(close, second.close);
                // Another mapping may get the address.
                draft.glue(second.close, third);
                draft.refusable(third);
                draft.order(third, sharing.end);
                draft.expect("error double-close", [third], [close, second.close]);
            }
        }
        Mistake::CloseInOtherContext => {
            let other = draft.other_place(&place);
            let wrong = draft.add(process, format!("close m{object} in c{}", other.context), &[open, other.ready]);
            refuse_or_end(draft, wrong, close);
            opening.uses.iter().for_each(|step| draft.order(*step, wrong));
            draft.order(wrong, if draft.stage.is_ours() { close } else { sharing.end });
            draft.expect("error wrong-context", Some(wrong), Some(open));
        }
        Mistake::CloseInside => {
            let wrong = draft.add(process, format!("close m{object} + 4096 in c{context}"), &[open]);
            draft.order(wrong, close);
            opening.uses.iter().for_each(|step| draft.order(*step, wrong));
            refuse_or_end(draft, wrong, close);
            draft.expect("error open-close-mismatch", Some(wrong), Some(open));
        }
        Mistake::FreeOfMapping => {
            let wrong = between(draft, opening, format!("free m{object} in c{context}"));
            draft.expect("error open-close-mismatch", Some(wrong), Some(open));
        }
        Mistake::UseAfterClose => {
            let handle = draft.register();
            let wrong = draft.add(process, format!("get m{object} -> h{handle} in c{context}"), &[close]);
            draft.glue(close, wrong);
            draft.refusable(wrong);
            draft.expect("error use-after-close", Some(wrong), Some(close));
        }
        Mistake::ExportOfImport => {
            let handle = draft.register();
            let wrong = between(draft, opening, format!("get m{object} -> h{handle} in c{context}"));
            draft.expect("note export-of-import", Some(wrong), Some(open));
        }
        _ => return false,
    }
    true
}

/// The adapters end the mapping by a wrong close. Our backend refuses, so the mapping still has to be closed.
fn refuse_or_end(draft: &mut Draft, wrong: Id, close: Id) {
    if draft.stage.is_ours() {
        draft.refusable(wrong);
    } else {
        draft.remove(close);
    }
}
