//! Other mistakes of the process that owns the memory.

use super::super::draft::Draft;
use super::super::mistake::Mistake;
use super::super::sharing::{Kind, Sharing, inside};
use super::{forget_other_gets, remove_opening};

/// Plants one of these mistakes. Returns false for another one.
pub(super) fn plant(draft: &mut Draft, sharing: &Sharing, mistake: Mistake) -> bool {
    let Sharing { owner, object, end, .. } = *sharing;
    let get = sharing.last_got().get;
    let process = owner.process;
    let context = owner.context;
    match mistake {
        Mistake::CloseOfOwn => {
            let close = draft.add(process, format!("close m{object} in c{context}"), &[sharing.make]);
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
            let step = format!("get m{object}{} -> h{another} in c{context}", inside(sharing.offset));
            let late = draft.add(process, step, &[end]);
            draft.glue(end, late);
            if sharing.kind == Kind::Pooled {
                draft.add(process, sharing.kind.put(another, context), &[late]);
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
            let usm = draft.random.choose(&["host", "shared"]);
            let handle = draft.register();
            let make = format!("alloc m{memory} {} as {usm} in c{context}", 5 << 20);
            let make = draft.add(process, make, &[owner.ready]);
            let wrong = draft.add(process, format!("get m{memory} -> h{handle} in c{context}"), &[make]);
            let put = draft.add(process, sharing.kind.put(handle, context), &[wrong]);
            draft.add(process, format!("free m{memory} in c{context}"), &[put]);
            draft.expect("warning wrong-usm", Some(wrong), Some(make));
            draft.expect("note get-without-open", Some(wrong), None);
            draft.optional();
        }
        Mistake::OpenAtHome => {
            let mut sharing = sharing.clone();
            sharing.open(draft, sharing.owner, None);
            let home = sharing.openings.last().expect("it was just added").open;
            draft.expect("note open-in-producer", Some(home), sharing.gets());
        }
        _ => return false,
    }
    true
}
