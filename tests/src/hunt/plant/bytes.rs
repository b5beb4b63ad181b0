//! Opens of bytes that are not what the open expects.

use super::super::Stage;
use super::super::draft::Draft;
use super::super::mistake::Mistake;
use super::super::sharing::{Kind, Sharing};
use super::refused_open;

/// Plants one of these mistakes. Returns false for another one.
pub(super) fn plant(draft: &mut Draft, sharing: &Sharing, mistake: Mistake) -> bool {
    let handle = sharing.sent.handle;
    let suffix = sharing.kind.suffix();
    match mistake {
        Mistake::GarbageBytes => {
            let wrong = refused_open(draft, sharing, suffix, "damaged");
            // v1 returns success for what the driver refuses.
            if draft.stage == Stage::V1 {
                draft.without_result(wrong);
                draft.expect("error success-without-result", Some(wrong), None);
            } else {
                draft.expect("note garbage-handle", Some(wrong), None);
            }
        }
        Mistake::CutBytes => {
            // The shortest handle data has 16 bytes.
            let length = 1 + draft.random.below(15);
            let wrong = refused_open(draft, sharing, suffix, &format!("h{handle} sized {length}"));
            draft.nodes[wrong.0].step += " 4";
            draft.expect("error size-mismatch", Some(wrong), None);
            draft.anywhere();
        }
        Mistake::FlippedBit => {
            // The highest byte of the number of the process. libumf knows memory by it, and opens what it does not
            // know.
            let is_opened = sharing.kind != Kind::Physical && !draft.stage.is_ours();
            let byte = if sharing.kind == Kind::Physical { 3 } else { 19 };
            let object = draft.register();
            let place = sharing.openings[0].place;
            let step = format!("open{suffix} h{handle} flipped {byte} -> m{object} in c{}", place.context);
            let wrong = draft.add(place.process, step, &[sharing.sent.get, place.ready]);
            if is_opened {
                let close = draft.add(place.process, format!("close m{object} in c{}", place.context), &[wrong]);
                draft.order(close, sharing.end);
            } else {
                draft.refusable(wrong);
            }
            draft.expect("error altered-handle", Some(wrong), sharing.gets());
        }
        Mistake::OtherKind => {
            let wrong = refused_open(draft, sharing, "-physical", &format!("h{handle}"));
            draft.order(wrong, sharing.got[0].put);
            draft.expect("error wrong-kind", Some(wrong), sharing.gets());
        }
        _ => return false,
    }
    true
}
