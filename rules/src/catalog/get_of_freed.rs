//! # What it does
//!
//! Finds a get on memory that this process has freed.
//!
//! # Why it is bad
//!
//! Freed memory cannot be shared. Where the free gave it back to the driver, the get is refused. What came from the adapter's
//! pool stays in the pool, and the get says success: the bytes are good, and show whoever opens them the next allocation of that
//! place. (A success is a note, because memory can also be made by functions that are not watched.)
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: free p
//! producer: get p -> h fails
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: free p
//! producer: alloc p 4096
//! producer: get p -> h
//! producer: put h
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Get before the free; where handle data is kept by address, forget it with the memory.

use urscope_schema::handle::Kind;

use super::{
    Rule, When,
    wording::{call, of_size},
};
use crate::{
    finding::{Finding, Severity},
    world::scene::{Opened, Scene, Sight},
};

pub(super) static RULE: Rule = Rule {
    code: "get-of-freed",
    severity: Severity::Error,
    when: When::Exit,
    title: "handle data is got of memory that is freed",
    source: include_str!("get_of_freed.rs"),
    look,
};

fn look(scene: &Scene<'_>) -> Option<Finding> {
    let Sight::Astray(stray, how) = scene.sight else { return None };
    if stray.was.kind != Kind::Usm {
        return None;
    }
    let (became, most) = match how {
        Opened::Not(result) => (format!("was answered {result}"), Severity::Error),
        Opened::Well => ("was let, as if it still lived".into(), Severity::Note),
    };
    let (who, at, what, size) = (scene.actor(), call(scene.at), stray.was, of_size(stray.size));
    let inside = match stray.pointer - what.value {
        0 => String::new(),
        inside => format!("{inside} bytes into "),
    };
    let message = format!(
        "{who} gets handle data in {at} for {inside}{what}{size} and {became}: it was freed in {}",
        call(stray.died)
    );
    let finding = Finding::new(&RULE, scene.at, what, message).other(Some(stray.died)).values(stray.size, None);
    Some(finding.at_most(most).advice("get before the free, and forget what is kept by address with the memory"))
}
