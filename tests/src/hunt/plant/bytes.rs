//! Opens of bytes that are not what the open expects.

use super::refused_open;
use crate::hunt::Stage;
use crate::hunt::draft::Draft;
use crate::hunt::mistake::Mistake;
use crate::hunt::sharing::Sharing;

/// Plants one of these mistakes. Returns false for another one.
pub(super) fn plant(draft: &mut Draft, sharing: &Sharing, mistake: Mistake) -> bool {
    let opening = &sharing.openings[0];
    let process = opening.place.process;
    match mistake {
        Mistake::GarbageBytes => {
            let bytes = draft.register();
            let receive = draft.add(process, "receive", format!("b{bytes} s{}", sharing.slot), &[sharing.send]);
            let seed = draft.random.below(1000);
            let overwrite = draft.add(process, "overwrite", format!("b{bytes} seed{seed}"), &[receive]);
            let wrong = refused_open(draft, opening, sharing.kind.operation("open"), bytes, overwrite);
            // v1 returns success for what the driver refuses.
            let finding = if draft.stage == Stage::V1 { "error success-without-result" } else { "note garbage-handle" };
            draft.expect(finding, Some(wrong), None);
        }
        Mistake::CutBytes => {
            let bytes = draft.register();
            let receive = draft.add(process, "receive", format!("b{bytes} s{}", sharing.slot), &[sharing.send]);
            // The shortest handle data has 16 bytes.
            let length = 1 + draft.random.below(15);
            let cut = draft.add(process, "cut", format!("b{bytes} {length}"), &[receive]);
            let wrong = refused_open(draft, opening, sharing.kind.operation("open"), bytes, cut);
            draft.expect("error size-mismatch", Some(wrong), None);
            draft.anywhere();
        }
        Mistake::OtherKind => {
            let bytes = draft.register();
            let receive = draft.add(process, "receive", format!("b{bytes} s{}", sharing.slot), &[sharing.send]);
            let wrong = refused_open(draft, opening, "open-physical", bytes, receive);
            draft.order(wrong, sharing.got[0].put);
            draft.expect("error wrong-kind", Some(wrong), sharing.gets());
        }
        _ => return false,
    }
    true
}
