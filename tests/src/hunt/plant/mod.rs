//! Plants one mistake into a correct exchange, and states what must be found.

mod bytes;
mod handles;
mod kinds;
mod mappings;
mod order;
mod owners;
mod uses;

use super::draft::{Draft, Id};
use super::mistake::Mistake;
use super::sharing::{Opening, Sharing};

/// Edits the exchange. Its first opening is by another process than its owner and all other openings.
pub(super) fn plant(draft: &mut Draft, sharing: &Sharing, mistake: Mistake) {
    let groups =
        [handles::plant, owners::plant, mappings::plant, bytes::plant, order::plant, kinds::plant, uses::plant];
    let planted = groups.iter().filter(|plant| plant(draft, sharing, mistake)).count();
    assert!(planted == 1, "{mistake:?} was planted {planted} times");
}

/// The first opening comes after a step that should have come after it. What it reads is undefined.
fn open_after(draft: &mut Draft, sharing: &Sharing, step: Id) {
    let opening = &sharing.openings[0];
    for got in &sharing.got {
        draft.release(opening.open, got.put);
    }
    draft.release(opening.close, sharing.end);
    draft.order(step, opening.open);
    opening.uses.iter().for_each(|step| draft.remove(*step));
}

/// A call that may be refused, between an open and its close.
fn between(draft: &mut Draft, opening: &Opening, step: String) -> Id {
    let wrong = draft.add(opening.place.process, step, &[opening.open]);
    draft.order(wrong, opening.close);
    draft.refusable(wrong);
    wrong
}

/// An open that may be refused. `what` is handle data, and the words behind it.
fn refused_open(draft: &mut Draft, sharing: &Sharing, suffix: &str, what: &str) -> Id {
    let object = draft.register();
    let place = sharing.openings[0].place;
    let step = format!("open{suffix} {what} -> m{object} in c{}", place.context);
    let wrong = draft.add(place.process, step, &[sharing.sent.get, place.ready]);
    draft.refusable(wrong);
    wrong
}

/// Leaves out all gets but the last.
fn forget_other_gets(draft: &mut Draft, sharing: &Sharing) {
    let (_, others) = sharing.got.split_last().expect("something was got");
    for other in others {
        draft.remove(other.get);
        draft.remove(other.put);
    }
}

fn remove_opening(draft: &mut Draft, opening: &Opening) {
    let steps = [opening.open, opening.close];
    steps.iter().chain(&opening.uses).for_each(|step| draft.remove(*step));
}
