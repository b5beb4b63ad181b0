//! The mistakes that can be planted. `plant/` shows how.

use super::{Stage, sharing::Kind};

const POOLED: &[Kind] = &[Kind::Pooled];
const UNPOOLED: &[Kind] = &[Kind::Unpooled];
const RAW: &[Kind] = &[Kind::Pooled, Kind::Unpooled, Kind::Raw];
const RAW_UNPOOLED: &[Kind] = &[Kind::Unpooled, Kind::Raw];
const MEMORY: &[Kind] = &[Kind::Pooled, Kind::Unpooled];
const FROM_POOL: &[Kind] = &[Kind::FromPool];
const QUEUED: &[Kind] = &[Kind::Queued, Kind::FromPool];
const PHYSICAL: &[Kind] = &[Kind::Physical];
const EVENT: &[Kind] = &[Kind::Event];
const SIZED: &[Kind] = &[Kind::Pooled, Kind::Unpooled, Kind::Physical];
const ALL: &[Kind] = &[Kind::Pooled, Kind::Unpooled, Kind::Physical, Kind::Event];

/// Every mistake, its name, and the kinds of objects that it is made with.
macro_rules! mistakes {
    ($($mistake:ident, $name:literal, $kinds:ident;)*) => {
        /// A mistake, named after the rule that finds it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names describe them")]
        pub enum Mistake { $($mistake,)* }

        const TABLE: &[(Mistake, &str, &[Kind])] = &[$((Mistake::$mistake, $name, $kinds),)*];
    };
}

mistakes! {
    LeakedHandle, "leaked-handle", MEMORY;
    LeakedMapping, "leaked-mapping", RAW;
    LeakedByExec, "leaked-by-exec", MEMORY;
    KilledHolder, "killed-holder", ALL;
    DoublePut, "double-put", RAW;
    DoublePutInChild, "double-put-in-child", MEMORY;
    DoubleClose, "double-close", RAW_UNPOOLED;
    ClosedOnceOfTwo, "closed-once-of-two", MEMORY;
    ClosedThriceOfTwo, "closed-thrice-of-two", UNPOOLED;
    FreedWhileOpen, "freed-while-open", MEMORY;
    QueuedFreeWhileOpen, "queued-free-while-open", QUEUED;
    PoolDroppedWhileOpen, "pool-dropped-while-open", FROM_POOL;
    GetOfHost, "get-of-host", MEMORY;
    PutBeforeFork, "put-before-fork", MEMORY;
    FreedBeforePut, "freed-before-put", MEMORY;
    NeverPut, "never-put", MEMORY;
    UseAfterPut, "use-after-put", RAW;
    UseAfterFree, "use-after-free", RAW;
    StaleHandle, "stale-handle", POOLED;
    GetOfFreed, "get-of-freed", MEMORY;
    CloseOfOwn, "close-of-own", MEMORY;
    PutOfCopy, "put-of-copy", MEMORY;
    PutOfNull, "put-of-null", MEMORY;
    CloseInOtherContext, "close-in-other-context", MEMORY;
    CloseInside, "close-inside", UNPOOLED;
    FreeOfMapping, "free-of-mapping", MEMORY;
    UseAfterClose, "use-after-close", UNPOOLED;
    ExportOfImport, "export-of-import", MEMORY;
    OpenAtHome, "open-at-home", MEMORY;
    NeverOpened, "never-opened", ALL;
    GarbageBytes, "garbage-bytes", ALL;
    CutBytes, "cut-bytes", ALL;
    FlippedBit, "flipped-bit", SIZED;
    OtherKind, "other-kind", MEMORY;
    ToldFirst, "told-first", MEMORY;
    Overwritten, "overwritten", MEMORY;
    OwnerEnds, "owner-ends", MEMORY;
    Churn, "churn", MEMORY;
    LeakedPhysicalHandle, "leaked-physical-handle", PHYSICAL;
    LeakedPhysicalMemory, "leaked-physical-memory", PHYSICAL;
    PhysicalDoublePut, "physical-double-put", PHYSICAL;
    PhysicalUseAfterPut, "physical-use-after-put", PHYSICAL;
    PhysicalFreedBeforePut, "physical-freed-before-put", PHYSICAL;
    RefusedGet, "refused-get", PHYSICAL;
    LeakedEvent, "leaked-event", EVENT;
    LeakedEventHandle, "leaked-event-handle", EVENT;
}

impl Mistake {
    /// The mistakes that can be planted on a stage.
    pub fn on(stage: Stage) -> Vec<Self> {
        let all = TABLE.iter().map(|(mistake, ..)| *mistake);
        all.filter(|mistake| mistake.can_be_on(stage)).collect()
    }

    /// The mistake with this name.
    pub fn named(name: &str) -> Option<Self> {
        TABLE.iter().find(|(_, its_name, _)| *its_name == name).map(|(mistake, ..)| *mistake)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Whether it is about a command of a queue, which may wait for an event of another process.
    pub(super) fn is_of_a_queue(self) -> bool {
        self == Self::QueuedFreeWhileOpen
    }

    /// The kinds of objects that it can be made with on a stage.
    pub(super) fn kinds(self, stage: Stage) -> Vec<Kind> {
        self.row().2.iter().copied().filter(|kind| kind.is_on(stage)).collect()
    }

    fn row(self) -> &'static (Self, &'static str, &'static [Kind]) {
        TABLE.iter().find(|(mistake, ..)| *mistake == self).expect("every mistake is in the table")
    }

    fn can_be_on(self, stage: Stage) -> bool {
        let is_harmless = match self {
            // The adapters would close a descriptor of something else.
            Self::PhysicalDoublePut => stage.is_ours(),
            Self::OtherKind => Kind::Physical.is_on(stage),
            // Level Zero shares what is mapped at an address.
            Self::RefusedGet => !stage.is_ours(),
            _ => true,
        };
        is_harmless && !self.kinds(stage).is_empty()
    }
}
