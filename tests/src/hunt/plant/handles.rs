//! Mistakes with handle data of memory in the process that got it.

use super::super::draft::{Draft, Id};
use super::super::mistake::Mistake;
use super::super::sharing::{Got, Sharing};

/// Plants one of these mistakes. Returns false for another one.
pub(super) fn plant(draft: &mut Draft, sharing: &Sharing, mistake: Mistake) -> bool {
    let Sharing { owner, object, end, .. } = *sharing;
    let Got { handle, get, put } = *sharing.last_got();
    let process = owner.process;
    let context = owner.context;
    let put_again = sharing.kind.put(handle, context);
    match mistake {
        Mistake::LeakedHandle => {
            draft.remove(put);
            draft.remove(end);
            draft.expect("warning leaked-handle", Some(get), None);
        }
        Mistake::LeakedByExec => {
            draft.remove(put);
            draft.remove(end);
            draft.exec(process);
            draft.expect("warning leaked-handle", Some(get), None);
        }
        Mistake::NeverPut => {
            draft.remove(put);
            draft.expect("note freed-while-exported", Some(end), Some(get));
        }
        Mistake::FreedBeforePut => {
            draft.release(put, end);
            draft.order(get, end);
            draft.order(end, put);
            draft.expect("note freed-while-exported", Some(end), Some(get));
        }
        Mistake::DoublePut => {
            // The second put frees a buffer that is free, or that of a later get. So no get comes after the two.
            draft.release(put, end);
            draft.remove(end);
            let again = draft.add(process, put_again, &[put]);
            draft.glue(put, again);
            draft.refusable(again);
            draft.last(put);
            draft.last(again);
            draft.expect("error double-put", Some(again), Some(put));
        }
        Mistake::DoublePutInChild => {
            let child = draft.fork(&owner, &[get]);
            draft.remove(put);
            let first = draft.add(child.process, put_again.clone(), &[]);
            let again = draft.add(child.process, put_again.clone(), &[first]);
            draft.refusable(again);
            let own = draft.add(process, put_again, &[]);
            draft.after_end(own, child.process);
            draft.order(own, end);
            for opening in &sharing.openings {
                draft.order(opening.open, own);
            }
            draft.expect("error double-put", Some(again), Some(first));
        }
        Mistake::PutBeforeFork => {
            let child = draft.fork(&owner, &[put]);
            // A later get may take the address.
            draft.glue(put, child.ready);
            let again = draft.add(child.process, put_again, &[]);
            draft.refusable(again);
            draft.expect("error double-put", Some(again), Some(put));
        }
        Mistake::PutOfCopy => {
            let copy = draft.add(process, format!("put copy in c{context}"), &[get]);
            draft.refusable(copy);
            draft.last(copy);
            draft.expect("error put-of-unknown", Some(copy), None);
        }
        Mistake::PutOfNull => {
            let null = draft.add(process, format!("put null in c{context}"), &[get]);
            draft.refusable(null);
            draft.expect("error invalid-argument", Some(null), None);
        }
        Mistake::Churn => {
            let puts: Vec<Id> = sharing.got.iter().map(|got| got.put).collect();
            let again = draft.register();
            let step = format!("120 times\nget m{object} -> h{again} in c{context}\nput h{again} in c{context}");
            let churn = draft.add(process, step, &puts);
            draft.nodes[churn.0].alone = true;
            draft.order(churn, end);
            draft.expect("note churn", Some(churn), None);
        }
        _ => return false,
    }
    true
}
