//! Which kind of fact a fact is, for consumers that want some kinds only.

use super::fact::What;

macro_rules! kinds {
    ($($kind:ident,)*) => {
        /// The kinds of facts, by which consumers subscribe.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each is the variant of `What` with the same name")]
        pub enum FactKind {
            $($kind,)*
        }

        impl FactKind {
            /// How many kinds there are.
            pub const COUNT: usize = [$(Self::$kind,)*].len();
        }

        impl What<'_> {
            /// Which kind of fact it is.
            pub const fn kind(&self) -> FactKind {
                match self {
                    $(Self::$kind { .. } => FactKind::$kind,)*
                }
            }
        }
    };
}

kinds! {
    InvalidArgument,
    Exporting,
    Opening,
    Creating,
    Ending,
    InvalidEnding,
    InUse,
    StaleUse,
    OutdatedUse,
    StaleEvent,
    ForeignUse,
    PastEnd,
    DeadAccess,
    Returned,
    Refused,
    OpenedExpired,
    OpenedUnknown,
    Dangling,
    Allocated,
    Exported,
    Opened,
    Put,
    Closed,
    Freed,
    ContextReleased,
    EndRefused,
    CallFailed,
    Support,
    Executed,
    Unordered,
    Descriptors,
    LeftHandle,
    LeftMapping,
    LeftRange,
    LeftDescriptor,
    LeftObject,
    ProcessEnded,
    CallsMissing,
    Finished,
}
