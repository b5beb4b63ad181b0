//! What many processes never have: it lies in memory of its own, which is there from the first of it on.

use std::{collections::VecDeque, ops::Deref};

use urscope_schema::{call::Nanos, handle::Handle};

use super::{
    fact::Missing,
    mapped::MappedRanges,
    process_state::Inherited,
    records::{Command, Context, Device, Object, Pool, Serial},
    table::Table,
};

/// A part of the state of a process that few processes have.
#[derive(Clone, Debug)]
pub(crate) struct Seldom {
    /// When the process was last seen running from outside, and when it was first seen to be gone.
    pub(crate) observed: Option<(Nanos, Nanos)>,
    pub(crate) objects: Table<Handle, Object>,
    /// The events that were made without the IPC flag: their releases are not recorded, so the last few are kept.
    pub(crate) plain_events: VecDeque<(Handle, Serial)>,
    /// The latest recorded commands, in the order of time.
    pub(crate) commands: VecDeque<Command>,
    pub(crate) contexts: Table<u64, Context>,
    pub(crate) pools: Table<u64, Pool>,
    /// Where physical memory is mapped.
    pub(crate) mapped: MappedRanges,
    pub(crate) inherited: Inherited,
    pub(crate) missing: Missing,
    /// The devices, by their handles.
    pub(crate) devices: Table<u64, Device>,
}

/// Of a process that has nothing of it.
static NOTHING: Seldom = Seldom {
    observed: None,
    objects: Table::new(),
    plain_events: VecDeque::new(),
    commands: VecDeque::new(),
    contexts: Table::new(),
    pools: Table::new(),
    mapped: MappedRanges::new(),
    inherited: Inherited::Nothing,
    missing: Missing { lost: 0, lines: 0 },
    devices: Table::new(),
};

/// The part, in memory that is made on demand. It is read as it is where there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct OnDemand(Option<Box<Seldom>>);

impl OnDemand {
    /// The part, to be changed where there is something to be changed.
    #[inline]
    pub(crate) fn known(&mut self) -> Option<&mut Seldom> {
        self.0.as_deref_mut()
    }

    /// The part, to be added to.
    #[inline]
    pub(crate) fn made(&mut self) -> &mut Seldom {
        self.0.get_or_insert_with(|| Box::new(NOTHING.clone()))
    }

    /// An object that is alive.
    #[inline]
    pub(crate) fn object_mut(&mut self, object: Handle) -> Option<&mut Object> {
        self.known()?.objects.get_mut(object)
    }
}

impl Deref for OnDemand {
    type Target = Seldom;

    #[inline]
    fn deref(&self) -> &Seldom {
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}
