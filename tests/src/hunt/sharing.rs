//! A correct exchange of one object: an owner gets handle data, others open it, and everything is ended in an allowed
//! order.
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
    /// Memory as `Unpooled`, whose handle the program gets, sends and opens by Level Zero itself.
    Raw,
    /// Physical memory.
    Physical,
    /// An event.
    Event,
}

impl Kind {
    /// Device memory of any origin.
    pub(super) fn is_memory(self) -> bool {
        matches!(self, Self::Pooled | Self::Unpooled | Self::Queued | Self::FromPool | Self::Raw)
    }

    /// Whether several parts of one piece are shared, each by handle data of its own.
    pub(super) fn has_parts(self) -> bool {
        // A handle of Level Zero names the whole.
        self.is_memory() && self != Self::Raw
    }

    /// What stands behind the steps that share it.
    pub(super) fn by(self) -> &'static str {
        if self == Self::Raw { " ze" } else { "" }
    }

    /// Whether it can be shared on a stage.
    pub(super) fn is_on(self, stage: Stage) -> bool {
        match self {
            Self::Pooled | Self::Unpooled | Self::Queued | Self::FromPool | Self::Raw => true,
            Self::Physical => stage.shares_physical_memory(),
            Self::Event => stage.shares_events(),
        }
    }

    /// What the verbs for this kind end with.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Physical => "-physical",
            Self::Event => "-event",
            _ => "",
        }
    }

    /// The step that puts handle data.
    pub(super) fn put(self, handle: usize, context: usize) -> String {
        format!("put{} h{handle} in c{context}{}", self.suffix(), self.by())
    }

    /// The step that ends an object in the process that made it.
    fn end(self, object: usize, context: usize) -> String {
        match self {
            Self::Physical | Self::Event => format!("release{} m{object}", self.suffix()),
            Self::Queued | Self::FromPool => format!("free m{object} in c{context} queued"),
            Self::Pooled | Self::Unpooled | Self::Raw => format!("free m{object} in c{context}"),
        }
    }
}

/// Handle data that was got: its number, its get, and its put.
#[derive(Clone, Copy, Debug)]
pub(super) struct Got {
    pub(super) handle: usize,
    pub(super) get: Id,
    pub(super) put: Id,
}

/// One opening by another process.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) place: Place,
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
    /// In bytes.
    pub(super) size: usize,
    /// Of what is shared, from the start of the memory.
    pub(super) offset: usize,
    pub(super) make: Id,
    /// The step after which the owner knows that it has written.
    pub(super) written: Id,
    pub(super) got: Vec<Got>,
    /// That of `got` which the others open.
    pub(super) sent: Got,
    pub(super) openings: Vec<Opening>,
    /// The free or release of the object.
    pub(super) end: Id,
    /// The end of the pool that the object comes from.
    pub(super) pool_end: Option<Id>,
}

/// How a step says that it is about an address inside.
pub(super) fn inside(offset: usize) -> String {
    if offset == 0 { String::new() } else { format!(" + {offset}") }
}

fn map_and_unmap(object: usize, context: usize) -> [String; 2] {
    [format!("map m{object} -> v{object} in c{context}"), format!("unmap v{object}")]
}

impl Sharing {
    /// Between an owner and the openers, one opening each. `after` comes before everything.
    pub(super) fn new(draft: &mut Draft, kind: Kind, owner: Place, openers: &[Place], after: &[Id]) -> Self {
        let object = draft.register();
        let size = match kind {
            Kind::Pooled => draft.random.choose(&[4096, 8192, 65536, 300_000, 1 << 19]),
            Kind::Unpooled | Kind::Raw | Kind::Queued | Kind::FromPool => {
                draft.random.choose(&[5 << 20, 8 << 20, 16 << 20])
            }
            Kind::Physical | Kind::Event => (1 + draft.random.below(2)) * (2 << 20),
        };
        let context = owner.context;
        let mut before: Vec<Id> = after.iter().copied().chain([owner.ready]).collect();
        let pool = (kind == Kind::FromPool).then(|| draft.register());
        before.extend(pool.map(|pool| draft.add(owner.process, format!("pool q{pool} in c{context}"), &before)));
        let make = match kind {
            Kind::Pooled | Kind::Unpooled | Kind::Raw => format!("alloc m{object} {size} in c{context}"),
            Kind::Queued => format!("alloc m{object} {size} in c{context} queued"),
            Kind::FromPool => {
                format!("alloc m{object} {size} in c{context} from q{} queued", pool.unwrap_or_default())
            }
            Kind::Physical => format!("physical m{object} ipc sized {size} in c{context}"),
            Kind::Event => format!("event m{object} ipc in c{context}"),
        };
        let make = draft.add(owner.process, make, &before);
        let end = draft.add(owner.process, kind.end(object, context), &[make]);
        let pool_end = pool.map(|pool| draft.add(owner.process, format!("release-pool q{pool}"), &[end]));
        let offset = if kind.has_parts() { draft.random.choose(&[0, 0, 0, 256, 2048]) } else { 0 };
        let seed = draft.random.below(1000);
        let written = Self::write(draft, kind, &owner, object, make, seed, offset, end);
        let got = Self::get(draft, kind, &owner, object, offset, make, end);
        let sent = got;
        let got = vec![got];
        let openings = Vec::new();
        let mut sharing = Self { kind, owner, object, size, offset, make, written, got, sent, openings, end, pool_end };
        if kind.has_parts() && draft.random.one_in(4) {
            sharing.get_again(draft, offset);
        }
        for opener in openers {
            sharing.open(draft, *opener, Some(seed));
        }
        sharing
    }

    fn get(draft: &mut Draft, kind: Kind, owner: &Place, object: usize, offset: usize, make: Id, end: Id) -> Got {
        let handle = draft.register();
        let suffix = kind.suffix();
        let context = owner.context;
        let by = kind.by();
        let step = format!("get{suffix} m{object}{} -> h{handle} in c{context}{by}", inside(offset));
        let get = draft.add(owner.process, step, &[make]);
        let put = draft.add(owner.process, kind.put(handle, owner.context), &[get]);
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
    ) -> Id {
        let context = owner.context;
        let write = match kind {
            Kind::Physical => {
                let [map, unmap] = map_and_unmap(object, context);
                let map = draft.add(owner.process, map, &[make]);
                let write = draft.add(owner.process, format!("write v{object} seed {seed} in c{context}"), &[map]);
                let unmap = draft.add(owner.process, unmap, &[write]);
                draft.order(unmap, end);
                write
            }
            Kind::Event => draft.add(owner.process, format!("signal m{object} in c{context}"), &[make]),
            _ => {
                let step = format!("write m{object}{} seed {seed} in c{context}", inside(offset));
                if draft.random.one_in(2) {
                    draft.add(owner.process, step, &[make])
                } else {
                    let write = draft.add(owner.process, step + " queued", &[make]);
                    draft.add(owner.process, "host-waits".into(), &[write])
                }
            }
        };
        draft.order(write, end);
        write
    }

    /// One more opening.
    pub(super) fn open(&mut self, draft: &mut Draft, place: Place, seed: Option<usize>) {
        let kind = self.kind;
        let context = place.context;
        let process = place.process;
        let object = draft.register();
        let sent = self.sent;
        // The opener has got the descriptor that the handle names, and writes its own number into it.
        let replaced = if kind == Kind::Raw && draft.random.one_in(3) { " replaced" } else { "" };
        let suffix = kind.suffix();
        let by = kind.by();
        let step = format!("open{suffix} h{} -> m{object} in c{context}{by}{replaced}", sent.handle);
        let open = draft.add(process, step, &[sent.get, place.ready]);
        let mut uses = Vec::new();
        let close = match kind {
            Kind::Physical => format!("close-physical m{object}"),
            Kind::Event => format!("release-event m{object}"),
            _ => format!("close m{object} in c{context}{by}"),
        };
        let close = draft.add(process, close, &[open]);
        if let Some(seed) = seed.filter(|_| draft.random.one_in(2)) {
            uses = Self::read(draft, kind, &place, object, seed);
            draft.order(open, uses[0]);
            for step in &uses {
                draft.order(self.written, *step);
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
        self.openings.push(Opening { place, object, open, uses, close });
    }

    fn read(draft: &mut Draft, kind: Kind, place: &Place, object: usize, seed: usize) -> Vec<Id> {
        let Place { process, context, .. } = *place;
        match kind {
            Kind::Physical => {
                let [map, unmap] = map_and_unmap(object, context);
                let map = draft.add(process, map, &[]);
                let compare = draft.add(process, format!("compare v{object} seed {seed} in c{context}"), &[map]);
                vec![map, compare, draft.add(process, unmap, &[compare])]
            }
            Kind::Event => vec![draft.add(process, format!("wait m{object}"), &[])],
            _ => vec![draft.add(process, format!("compare m{object} seed {seed} in c{context}"), &[])],
        }
    }

    /// The last handle data that was got.
    pub(super) fn last_got(&self) -> &Got {
        self.got.last().expect("something was got")
    }

    /// Another part of the memory is shared, too.
    pub(super) fn share_part(&mut self, draft: &mut Draft, with: Place) {
        let offset = self.offset + 512;
        let got = Self::get(draft, self.kind, &self.owner, self.object, offset, self.make, self.end);
        self.share_handle(draft, got, with);
    }

    /// The first opener shares opened physical memory with a third process, which is allowed for this kind.
    pub(super) fn share_on(&mut self, draft: &mut Draft, with: Place) {
        let Opening { place, object, open, close, .. } = self.openings[0].clone();
        let got = Self::get(draft, self.kind, &place, object, 0, open, close);
        self.share_handle(draft, got, with);
    }

    fn share_handle(&mut self, draft: &mut Draft, got: Got, with: Place) {
        let mut other = Self { sent: got, got: vec![got], ..self.clone() };
        other.open(draft, with, None);
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
