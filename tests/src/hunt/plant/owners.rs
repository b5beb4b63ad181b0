//! Other mistakes of the process that owns the memory.

use super::{forget_other_gets, remove_opening};
use crate::hunt::draft::Draft;
use crate::hunt::mistake::Mistake;
use crate::hunt::sharing::{Kind, Sharing};

/// Plants one of these mistakes. Returns false for another one.
pub(super) fn plant(draft: &mut Draft, sharing: &Sharing, mistake: Mistake) -> bool {
    let Sharing { owner, object, end, .. } = *sharing;
    let get = sharing.last_got().get;
    let (process, context) = (owner.process, owner.context);
    match mistake {
        Mistake::CloseOfOwn => {
            let close = draft.add(process, "close", format!("m{object} c{context} +0"), &[sharing.make]);
            draft.order(close, end);
            draft.refusable(close);
            draft.expect("error close-of-unknown", Some(close), Some(sharing.make));
        }
        Mistake::NeverOpened => {
            for opening in &sharing.openings {
                remove_opening(draft, opening);
            }
            forget_other_gets(draft, sharing);
            draft.expect("note get-without-open", Some(get), None);
        }
        Mistake::GetOfFreed => {
            let another = draft.register();
            let late =
                draft.add(process, "get", format!("h{another} m{object} c{context} +{}", sharing.offset), &[end]);
            draft.glue(end, late);
            if sharing.kind == Kind::Pooled {
                draft.add(process, "put", format!("h{another} c{context}"), &[late]);
                draft.expect("note get-of-freed", Some(late), Some(end));
                draft.expect("note get-without-open", Some(late), None);
                draft.optional();
            } else {
                draft.refusable(late);
                draft.expect("error get-of-freed", Some(late), Some(end));
            }
        }
        Mistake::GetOfHost => {
            let memory = draft.register();
            let make = draft.random.choose(&["alloc-host", "alloc-shared"]);
            let make = draft.add(process, make, format!("m{memory} c{context} {}", 5 << 20), &[owner.ready]);
            let wrong = draft.add(process, "get-put", format!("m{memory} c{context}"), &[make]);
            draft.refusable(wrong);
            draft.add(process, "free", format!("m{memory} c{context}"), &[wrong]);
            draft.expect("warning wrong-usm", Some(wrong), Some(make));
            // It may be refused.
            draft.expect("note get-without-open", Some(wrong), None);
            draft.optional();
        }
        Mistake::OpenAtHome => {
            let mut sharing = sharing.clone();
            sharing.open(draft, sharing.owner, &[], 0);
            let home = sharing.openings.last().expect("it was just added").open;
            draft.expect("note open-in-producer", Some(home), sharing.gets());
        }
        _ => return false,
    }
    true
}
