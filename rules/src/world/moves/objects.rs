//! Physical memory and events: born at the exit of the call that made or opened them, gone at the enter of their last
//! release.

use urscope_schema::{
    api::{Function, demand::IPC},
    handle::{Handle, Kind},
};

use crate::{
    finding::Place,
    life::{Event, State, step},
    world::{
        ProcessId, World,
        process::Aim,
        records::{Grave, Object, Origin, Serial},
    },
};

/// How many events without the IPC flag are remembered.
const PLAIN_EVENTS: usize = 1024;

/// What a call makes that was handed these flags.
pub(super) fn origin(function: Function, flags: Option<u64>) -> Origin {
    if function.is_ipc() {
        Origin::Imported
    } else if flags.is_some_and(|flags| flags & IPC != 0) {
        Origin::Shareable
    } else {
        Origin::Plain
    }
}

pub(super) fn made(world: &mut World, born: Place, handle: Handle, origin: Origin) {
    let serial = world.next_serial();
    let Some(life) = world.life_mut(born.process) else { return };
    life.graves.forget(handle);
    life.objects.insert(handle, Object { serial, state: State::Alive, references: 1, born, origin });
    if handle.kind == Kind::Event && origin == Origin::Plain {
        life.plain_events.push_back((handle, serial));
        if life.plain_events.len() > PLAIN_EVENTS
            && let Some((oldest, serial)) = life.plain_events.pop_front()
            && life.objects.get(&oldest).is_some_and(|object| object.serial == serial)
        {
            life.objects.remove(&oldest);
        }
    }
}

fn known(world: &mut World, who: ProcessId, object: Handle) -> Option<&mut Object> {
    world.life_mut(who)?.objects.get_mut(&object)
}

/// A reference is taken. Objects that were not seen being made are not counted.
pub(super) fn retain(world: &mut World, who: ProcessId, kind: Kind, value: Option<u64>) -> Aim {
    let Some(object) = value.map(|value| Handle { kind, value }) else { return Aim::Nothing };
    let Some(counted) = known(world, who, object) else { return Aim::Nothing };
    counted.references += 1;
    Aim::Refer { object, serial: counted.serial }
}

pub(super) fn retained(world: &mut World, who: ProcessId, object: Handle, serial: Serial, success: bool) {
    if let Some(counted) = known(world, who, object).filter(|counted| !success && counted.serial == serial) {
        counted.references = counted.references.saturating_sub(1);
    }
}

/// A reference is given back; the object dies with the last.
pub(super) fn release(world: &mut World, who: ProcessId, kind: Kind, value: Option<u64>) -> Aim {
    let Some(object) = value.map(|value| Handle { kind, value }) else { return Aim::Nothing };
    let Some(counted) = known(world, who, object).filter(|counted| counted.references > 0) else { return Aim::Nothing };
    counted.references -= 1;
    if counted.references == 0 {
        counted.state = step(counted.state, Event::Ending).next;
    }
    Aim::Unrefer { object, serial: counted.serial }
}

pub(super) fn unreferred(world: &mut World, died: Place, object: Handle, serial: Serial, success: bool) {
    let Some(counted) = known(world, died.process, object).filter(|counted| counted.serial == serial) else { return };
    if !success {
        counted.references += 1;
        counted.state = step(counted.state, Event::Refused).next;
        return;
    }
    if counted.references > 0 {
        return;
    }
    let born = counted.born;
    let Some(life) = world.life_mut(died.process) else { return };
    life.objects.remove(&object);
    // An event's address may be used again by one that is not recorded.
    if object.kind == Kind::PhysicalMem {
        let grave = Grave { born, died, size: None, fingerprint: None, excused: false };
        life.graves.bury(object, grave);
    }
}
