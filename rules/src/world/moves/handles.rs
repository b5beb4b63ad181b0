//! Handle data: got at the exit of a get, gone at the enter of its put.

use urscope_schema::handle::{Handle, Kind};

use super::memory::allocated;
use crate::{
    finding::Place,
    life::{Event, State, step},
    world::{
        ProcessId, World,
        process::Aim,
        records::{Got, Grave, Serial},
    },
};

/// From so many exports of one allocation on, those are looked for that are forgotten already.
const MANY_EXPORTS: usize = 1024;

pub(super) fn put(world: &mut World, who: ProcessId, handle: Handle) -> Aim {
    let Some(got) = world.life_mut(who).and_then(|life| life.handles.get_mut(&handle)) else { return Aim::Nothing };
    let before = got.state;
    got.state = step(before, Event::Ending).next;
    let (serial, export) = (got.serial, got.export);
    if let (State::Alive, Some(export)) = (before, export) {
        world.exports.put(export);
    }
    Aim::Put { handle, serial }
}

pub(super) fn got(
    world: &mut World,
    born: Place,
    pointer: Option<u64>,
    allocation: Option<Serial>,
    handle: Handle,
    fingerprint: Option<u64>,
) {
    let who = born.process;
    let known = |world: &World| {
        let (base, found) = world.life(who)?.allocation_at(pointer?)?;
        Some((base, found.serial, found.size))
    };
    let found = match (allocation, pointer) {
        // Physical memory and events are known by their own handles, and nothing hangs on the export of one.
        _ if handle.kind != Kind::MemHandle => None,
        (None, Some(stranger)) if known(world).is_none() => {
            allocated(world, who, stranger, None, None);
            known(world)
        }
        _ => known(world).filter(|(_, serial, _)| allocation.is_none_or(|aimed| aimed == *serial)),
    };
    let size = found.and_then(|(base, _, size)| size?.checked_sub(pointer? - base));
    let allocation = allocation.or(found.map(|(_, serial, _)| serial));
    let host = world.process(who).map_or(0, |process| process.host);
    let export = fingerprint
        .filter(|_| handle.kind == Kind::MemHandle)
        .map(|bytes| world.exports.export((host, bytes), allocation, size, born));
    let serial = world.next_serial();
    let World { lives, exports, .. } = world;
    let Some(life) = lives.get_mut(who.0 as usize) else { return };
    if let (Some((base, ..)), Some(export)) = (found, export)
        && let Some(allocation) = life.allocations.get_mut(&base)
        && allocation.exports.insert(export)
        && allocation.exports.len() >= MANY_EXPORTS
        && allocation.exports.len().is_power_of_two()
    {
        allocation.exports.retain(|id| exports.get(*id).is_some());
    }
    life.graves.forget(handle);
    let new = Got { serial, state: State::Alive, born, pointer, size, fingerprint, export, allocation };
    // Whatever was there has ended where we do not see.
    if let Some(Got { state: State::Alive, export: Some(export), .. }) = life.handles.insert(handle, new) {
        exports.put(export);
    }
}

pub(super) fn has_put(world: &mut World, died: Place, handle: Handle, serial: Serial, success: bool) {
    let World { lives, exports, .. } = world;
    let Some(life) = lives.get_mut(died.process.0 as usize) else { return };
    let Some(got) = life.handles.get_mut(&handle).filter(|got| got.serial == serial) else { return };
    let next = step(got.state, if success { Event::Ended } else { Event::Refused }).next;
    let before = std::mem::replace(&mut got.state, next);
    match (before, next, got.export) {
        (State::Dying, State::Alive, Some(export)) => exports.put_refused(export),
        (State::Alive, State::Dead, Some(export)) => exports.put(export),
        _ => {}
    }
    if next == State::Dead {
        let Got { born, size, fingerprint, .. } = *got;
        life.handles.remove(&handle);
        let grave = Grave { born, died, size, fingerprint, excused: false };
        life.graves.bury(handle, grave);
    }
}
