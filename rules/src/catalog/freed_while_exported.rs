//! # What it does
//!
//! Notes memory that is freed before the handles got of it are put, while nobody has it open.
//!
//! # Why it is bad
//!
//! It is not: SYCL allows it, and freeing the memory ends its handles. But the bytes of the handle are worthless from
//! then on, and nothing keeps a consumer that still holds them from opening them.
//!
//! # Bad trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m
//! producer: free p
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: alloc p 4096
//! producer: get p -> h
//! consumer: open h -> m
//! consumer: close m
//! producer: put h
//! producer: free p
//! ```
//!
//! # What to do
//!
//! Nothing has to be done. Put the handle before the free where the end of the sharing is to be seen in the program.

use urscope_schema::handle::Kind;

use super::{
    Rule, When,
    wording::{call, handle, number, of_size},
};
use crate::{
    finding::{Finding, Severity},
    world::scene::{Scene, Sight},
};

pub(super) static RULE: Rule = Rule {
    code: "freed-while-exported",
    severity: Severity::Note,
    when: When::Exit,
    title: "memory is freed before its handles are put, which SYCL allows",
    source: include_str!("freed_while_exported.rs"),
    look,
};

fn look(scene: &Scene<'_>) -> Option<Finding> {
    let Sight::Freed(freed) = scene.sight else { return None };
    let got = freed.got.filter(|_| freed.holder.is_none())?;
    let what = handle(Kind::Usm, freed.pointer);
    let (who, size, at) = (scene.actor(), of_size(freed.size), call(scene.at));
    let handles = number(freed.handles, "handle");
    let message =
        format!("{who} frees {what}{size} in {at} with {handles} of it not put, the last got in {}", call(got));
    let finding = Finding::new(&RULE, scene.at, what, message).other(Some(got));
    Some(
        finding
            .values(freed.size, freed.fingerprint)
            .advice("SYCL allows it; put before the free to be plain about it"),
    )
}
