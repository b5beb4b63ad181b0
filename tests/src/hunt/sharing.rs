//! A correct exchange of one object: an owner gets handle data, others open it, and everything is ended in an allowed order.
//!
//! The three kinds have the same shape. Mistakes are edits of it.

use super::Stage;
use super::draft::{Draft, Id, Place};

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Device memory from a pool of the adapter.
    Pooled,
    /// Device memory that is the driver's own allocation.
    Unpooled,
    /// Device memory that a command of a queue allocates and frees.
    Queued,
    /// The same, from a pool that the program makes.
    FromPool,
    /// Physical memory.
    Physical,
    /// An event.
    Event,
}

impl Kind {
    /// Device memory of any origin.
    pub(super) fn is_memory(self) -> bool {
        matches!(self, Self::Pooled | Self::Unpooled | Self::Queued | Self::FromPool)
    }

    /// Whether it can be shared on a stage.
    pub(super) fn is_on(self, stage: Stage) -> bool {
        match self {
            Self::Pooled | Self::Unpooled | Self::Queued | Self::FromPool => true,
            Self::Physical => stage.shares_physical_memory(),
            Self::Event => stage.shares_events(),
        }
    }

    /// The operation of the interpreter for this kind, of "get", "put", "open" or "drop".
    pub(super) fn operation(self, verb: &str) -> &'static str {
        match (self, verb) {
            (Self::Physical, "get") => "get-physical",
            (Self::Physical, "put") => "put-physical",
            (Self::Physical, "open") => "open-physical",
            (Self::Physical, _) => "drop-physical",
            (Self::Event, "get") => "get-event",
            (Self::Event, "put") => "put-event",
            (Self::Event, "open") => "open-event",
            (Self::Event, _) => "drop-event",
            (Self::Queued | Self::FromPool, "drop") => "free-queued",
            (_, "get") => "get",
            (_, "put") => "put",
            (_, "open") => "open",
            (_, _) => "free",
        }
    }
}

/// Handle data that was got: its number, its get, and its put.
#[derive(Clone, Debug)]
pub(super) struct Got {
    pub(super) handle: usize,
    pub(super) get: Id,
    pub(super) put: Id,
}

/// One opening by another process.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) place: Place,
    pub(super) receive: Id,
    pub(super) bytes: usize,
    pub(super) object: usize,
    pub(super) open: Id,
    pub(super) uses: Vec<Id>,
    pub(super) close: Id,
}

/// The whole exchange.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    pub(super) kind: Kind,
    pub(super) owner: Place,
    pub(super) object: usize,
    /// In bytes; of physical memory in granules.
    pub(super) size: usize,
    /// Of what is shared, from the start of the memory.
    pub(super) offset: usize,
    pub(super) make: Id,
    pub(super) got: Vec<Got>,
    pub(super) slot: usize,
    pub(super) send: Id,
    pub(super) openings: Vec<Opening>,
    /// The free or release of the object.
    pub(super) end: Id,
    /// The end of the pool that the object comes from.
    pub(super) pool_end: Option<Id>,
}

/// The arguments of a make, a use, and an end of an object.
struct Arguments {
    kind: Kind,
    object: usize,
    context: usize,
}

impl Arguments {
    fn make(&self, size: usize) -> String {
        match self.kind {
            Kind::Event => format!("e{} c{}", self.object, self.context),
            _ => format!("m{} c{} {size}", self.object, self.context),
        }
    }

    fn end(&self) -> String {
        if self.kind.is_memory() { format!("m{} c{}", self.object, self.context) } else { format!("m{}", self.object) }
    }
}

impl Sharing {
    /// Between an owner and the openers, one opening each. `after` comes before everything.
    pub(super) fn new(draft: &mut Draft, kind: Kind, owner: Place, openers: &[Place], after: &[Id]) -> Self {
        let object = draft.register();
        let size = match kind {
            Kind::Pooled => draft.random.choose(&[4096, 8192, 65536, 300_000, 1 << 19]),
            Kind::Unpooled | Kind::Queued | Kind::FromPool => draft.random.choose(&[5 << 20, 8 << 20, 16 << 20]),
            Kind::Physical | Kind::Event => 1 + draft.random.below(2),
        };
        let arguments = Arguments { kind, object, context: owner.context };
        let make = match kind {
            Kind::Pooled | Kind::Unpooled => "alloc",
            Kind::Queued => "alloc-queued",
            Kind::FromPool => "alloc-from",
            Kind::Physical => "make-physical",
            Kind::Event => "make-event",
        };
        let mut before: Vec<Id> = after.iter().copied().chain([owner.ready]).collect();
        let pool = (kind == Kind::FromPool).then(|| draft.register());
        before.extend(
            pool.map(|pool| draft.add(owner.process, "make-pool", format!("q{pool} c{}", owner.context), &before)),
        );
        let from = pool.map_or_else(String::new, |pool| format!(" q{pool}"));
        let make = draft.add(owner.process, make, arguments.make(size) + &from, &before);
        let end = draft.add(owner.process, kind.operation("drop"), arguments.end(), &[make]);
        let pool_end = pool.map(|pool| draft.add(owner.process, "drop-pool", format!("q{pool}"), &[end]));
        let offset = if kind.is_memory() { draft.random.choose(&[0, 0, 0, 256, 2048]) } else { 0 };
        let seed = draft.random.below(1000);
        let written = Self::write(draft, kind, &owner, object, make, seed, offset, end);
        let got = Self::get(draft, kind, &owner, object, offset, make, end);
        let slot = draft.register();
        let send = draft.add(owner.process, "send", format!("h{} s{slot}", got.handle), &[got.get]);
        draft.order(send, got.put);
        let (got, openings) = (vec![got], Vec::new());
        let mut sharing = Self { kind, owner, object, size, offset, make, got, slot, send, openings, end, pool_end };
        if kind.is_memory() && draft.random.one_in(4) {
            sharing.get_again(draft, offset);
        }
        for opener in openers {
            sharing.open(draft, *opener, &written, seed);
        }
        sharing
    }

    fn get(draft: &mut Draft, kind: Kind, owner: &Place, object: usize, offset: usize, make: Id, end: Id) -> Got {
        let handle = draft.register();
        let arguments = match kind {
            Kind::Physical | Kind::Event => format!("h{handle} m{object}"),
            _ => format!("h{handle} m{object} c{} +{offset}", owner.context),
        };
        let get = draft.add(owner.process, kind.operation("get"), arguments, &[make]);
        let put = draft.add(owner.process, kind.operation("put"), format!("h{handle} c{}", owner.context), &[get]);
        draft.order(put, end);
        Got { handle, get, put }
    }

    /// A second get of the same memory, whose bytes are not sent.
    fn get_again(&mut self, draft: &mut Draft, offset: usize) {
        let again = Self::get(draft, self.kind, &self.owner, self.object, offset, self.make, self.end);
        // The bytes equal those that were sent, and are valid until the last put.
        self.got.push(again);
    }

    /// Writes a pattern, or signals the event. Physical memory is mapped for that.
    #[expect(clippy::too_many_arguments, reason = "it is one step of `new`")]
    fn write(
        draft: &mut Draft,
        kind: Kind,
        owner: &Place,
        object: usize,
        make: Id,
        seed: usize,
        offset: usize,
        end: Id,
    ) -> Vec<Id> {
        let context = owner.context;
        let write = match kind {
            Kind::Physical => {
                let map = draft.add(owner.process, "map", format!("m{object} c{context}"), &[make]);
                let write =
                    draft.add(owner.process, "write-physical", format!("m{object} c{context} seed{seed}"), &[map]);
                let unmap = draft.add(owner.process, "unmap", format!("m{object}"), &[write]);
                draft.order(unmap, end);
                write
            }
            Kind::Event => draft.add(owner.process, "signal", format!("e{object} c{context}"), &[make]),
            _ => draft.add(owner.process, "write", format!("m{object} c{context} seed{seed} +{offset}"), &[make]),
        };
        draft.order(write, end);
        vec![write]
    }

    /// One more opening.
    pub(super) fn open(&mut self, draft: &mut Draft, place: Place, written: &[Id], seed: usize) {
        let (kind, context, process) = (self.kind, place.context, place.process);
        let (bytes, object) = (draft.register(), draft.register());
        let receive = draft.add(process, "receive", format!("b{bytes} s{}", self.slot), &[self.send]);
        let opens = kind.operation("open");
        let open = draft.add(process, opens, format!("m{object} b{bytes} c{context}"), &[receive, place.ready]);
        let mut uses = Vec::new();
        let close = match kind {
            Kind::Physical | Kind::Event => draft.add(process, kind.operation("drop"), format!("m{object}"), &[open]),
            _ => draft.add(process, "close", format!("m{object} c{context} +0"), &[open]),
        };
        if !written.is_empty() && draft.random.one_in(2) {
            uses = Self::read(draft, kind, &place, object, seed);
            draft.order(open, uses[0]);
            for (write, step) in written.iter().flat_map(|write| uses.iter().map(move |step| (write, step))) {
                draft.order(*write, *step);
            }
        }
        for step in &uses {
            draft.order(*step, close);
        }
        for got in &self.got {
            draft.order(open, got.put);
        }
        if kind.is_memory() {
            draft.order(close, self.end);
        }
        self.openings.push(Opening { place, receive, bytes, object, open, uses, close });
    }

    fn read(draft: &mut Draft, kind: Kind, place: &Place, object: usize, seed: usize) -> Vec<Id> {
        let Place { process, context, .. } = *place;
        match kind {
            Kind::Physical => {
                let map = draft.add(process, "map", format!("m{object} c{context}"), &[]);
                let compares = format!("m{object} c{context} seed{seed}");
                let compare = draft.add(process, "compare-physical", compares, &[map]);
                vec![map, compare, draft.add(process, "unmap", format!("m{object}"), &[compare])]
            }
            Kind::Event => vec![draft.add(process, "wait", format!("e{object}"), &[])],
            _ => vec![draft.add(process, "compare", format!("m{object} c{context} seed{seed} +0"), &[])],
        }
    }

    /// The last handle data that was got.
    pub(super) fn last_got(&self) -> &Got {
        self.got.last().expect("something was got")
    }

    /// The first opener sends the bytes on to another process.
    pub(super) fn forward(&mut self, draft: &mut Draft, to: Place) {
        let first = self.openings[0].clone();
        let slot = draft.register();
        let send = draft.add(first.place.process, "forward", format!("b{} s{slot}", first.bytes), &[first.receive]);
        let mut forwarded = Self { slot, send, ..self.clone() };
        forwarded.open(draft, to, &[], 0);
        self.openings = forwarded.openings;
    }

    /// Another part of the memory is shared, too.
    pub(super) fn share_part(&mut self, draft: &mut Draft, with: Place) {
        let offset = self.offset + 512;
        let got = Self::get(draft, self.kind, &self.owner, self.object, offset, self.make, self.end);
        self.share_handle(draft, self.owner, got, with);
    }

    /// The first opener shares opened physical memory with a third process, which is allowed for this kind.
    pub(super) fn share_on(&mut self, draft: &mut Draft, with: Place) {
        let Opening { place, object, open, close, .. } = self.openings[0].clone();
        let got = Self::get(draft, self.kind, &place, object, 0, open, close);
        self.share_handle(draft, place, got, with);
    }

    fn share_handle(&mut self, draft: &mut Draft, owner: Place, got: Got, with: Place) {
        let slot = draft.register();
        let send = draft.add(owner.process, "send", format!("h{} s{slot}", got.handle), &[got.get]);
        let mut other = Self { slot, send, got: vec![got], ..self.clone() };
        other.open(draft, with, &[], 0);
        self.openings = other.openings;
    }

    /// All gets. Their bytes may be equal.
    pub(super) fn gets(&self) -> Vec<Id> {
        self.got.iter().map(|got| got.get).collect()
    }

    /// All openings but the first are ended before a step. The first is the one that a mistake is about.
    pub(super) fn others_end_before(&self, draft: &mut Draft, step: Id) {
        for opening in self.openings.iter().skip(1) {
            draft.order(opening.close, step);
        }
    }
}
