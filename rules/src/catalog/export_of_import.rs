//! # What it does
//!
//! Finds a get on an event that this process has itself opened from handle data.
//!
//! # Why it is bad
//!
//! Only the process that made an event can share it: the header answers UR_RESULT_ERROR_INVALID_EVENT. (Physical memory that
//! was opened may be shared on.)
//!
//! # Bad trace
//!
//! ```text
//! producer: event e ipc
//! producer: get-event e -> h
//! consumer: open-event h -> i
//! consumer: get-event i -> h2 fails
//! consumer: release-event i
//! producer: put-event h
//! ```
//!
//! # Good trace
//!
//! ```text
//! producer: event e ipc
//! producer: get-event e -> h
//! consumer: open-event h -> i
//! consumer: release-event i
//! producer: put-event h
//! producer: release-event e
//! ```
//!
//! # What to do
//!
//! Send on the bytes that were received: they are good for as many processes as one likes, while the event lives.

use urscope_schema::handle::Kind;

use super::{
    Rule, When,
    wording::{INVALID_EVENT, call},
};
use crate::{
    finding::{Finding, Severity},
    world::{
        records::Origin,
        scene::{Scene, Sight},
    },
};

pub(super) static RULE: Rule = Rule {
    code: "export-of-import",
    severity: Severity::Error,
    when: When::Enter,
    title: "a get of an event that was opened from another process",
    source: include_str!("export_of_import.rs"),
    look,
};

fn look(scene: &Scene<'_>) -> Option<Finding> {
    let Sight::Exporting(what, object) = scene.sight else { return None };
    if what.kind != Kind::Event || object.origin != Origin::Imported {
        return None;
    }
    let (who, at) = (scene.actor(), call(scene.at));
    let message = format!("{who} gets handle data in {at} for {what}, which it opened in {}", call(object.born));
    let finding = Finding::new(&RULE, scene.at, what, message).other(Some(object.born));
    Some(finding.advice("send on the bytes that were received instead").answer(INVALID_EVENT))
}
