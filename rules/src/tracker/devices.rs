//! Which device a call names, and which one it should be: that of its context, or that of the memory that it opens.
//!
//! A device is known by its handle, and that is an address of its process: between processes nothing can be said. Of a
//! context of several devices only their number is known, so nothing is said of it either.

use urscope_schema::{
    api::{Effect, UrResult},
    call::{Enter, Values},
    handle::{Handle, Kind},
};

use super::{Tracker, fact::Opened, opens, process_state::ProcessState};
use crate::finding::Place;

/// What the adapters answer to a device that is none of the context's: `INVALID_CONTEXT`, `INVALID_ARGUMENT`, `UNKNOWN`, or success
/// without a result. A sub-device is let.
const ANSWERS: [UrResult; 4] = [UrResult(5), UrResult(45), UrResult(0x7fff_fffe), UrResult::SUCCESS];

/// A call with another device than it should have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongDevice {
    /// The device that it names.
    pub(crate) device: u64,
    /// The one that it should name.
    pub(crate) right: u64,
    /// What that one is of: a context, or memory.
    pub(crate) of: Handle,
    /// The call that made it.
    pub(crate) made: Option<Place>,
}

impl WrongDevice {
    /// Whether what became of the call shows that the device was the reason. A context takes sub-devices of its device, so that
    /// a success is no violation; memory has just one.
    pub(crate) fn is_proved(&self, opened: Opened) -> bool {
        match opened {
            Opened::Well => self.of.kind != Kind::Context,
            Opened::Not(result) => ANSWERS.contains(&result),
        }
    }
}

/// The only device that the call to make a context names.
pub(super) fn only(values: &Values) -> Option<u64> {
    values.device.filter(|_| values.count == Some(1))
}

impl Tracker {
    /// What is wrong with the device of a call that is to make something.
    pub(super) fn wrong_device(&self, life: &ProcessState, enter: &Enter) -> Option<Box<WrongDevice>> {
        let Effect::Makes(_) = enter.function.effect() else { return None };
        let device = enter.values.device.filter(|device| *device != 0)?;
        let context = enter.values.context?;
        let of_context = life.contexts.get(&context).and_then(|known| {
            let of = Handle { kind: Kind::Context, value: context };
            Some(WrongDevice { device, right: known.device?, of, made: Some(known.born) })
        });
        let wrong = |wrong_device: &WrongDevice| wrong_device.right != device;
        let found = of_context.filter(wrong).or_else(|| {
            let export = self.exports.of_bytes(life.process.host, enter.values.fingerprint?)?;
            let export = self.exports.get(export).filter(|_| opens(enter.function) == Some(Kind::MemHandle))?;
            // Handles of another process say nothing here.
            let own = std::ptr::eq(self.life(export.got.process)?, life);
            let (base, memory) = life.allocation_at(export.subject.value.filter(|_| own)?)?;
            let of = Handle { kind: Kind::Usm, value: base };
            Some(WrongDevice { device, right: memory.device?, of, made: memory.born }).filter(wrong)
        });
        found.map(Box::new)
    }
}
