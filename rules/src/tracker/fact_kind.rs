//! Which kind of fact a fact is, for consumers that want some kinds only.

use smallvec::{SmallVec, smallvec};
use urscope_schema::handle::Kind;

use super::fact::{Exporting, Returning, Source, What};

/// The kinds of facts, for choosing those that a consumer wants.
///
/// Each is the variant of [`What`] with the same name, except for those whose names begin with `Part`: they are a part of one, for
/// rules that need nothing of the most frequent calls, those that share USM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the variant of `What` with the same name")]
pub enum FactKind {
    InvalidArgument,
    Exporting,
    Opening,
    Creating,
    Ending,
    InvalidEnding,
    InUse,
    StaleUse,
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
    OpenFailed,
    Support,
    Descriptors,
    LeftHandle,
    LeftMapping,
    LeftObject,
    ProcessEnded,
    CallsMissing,
    Finished,
    /// [`What::Exporting`] of USM of the process.
    PartExportingUsm,
    /// [`What::Exporting`] of anything else.
    PartExportingOther,
    /// [`What::Exported`] of memory.
    PartExportedUsm,
    /// [`What::Exported`] of anything else.
    PartExportedOther,
    /// [`What::Ending`] of handle data of memory, by Unified Runtime.
    PartPuttingUsm,
    /// [`What::Ending`] of other handle data.
    PartPuttingOther,
    /// [`What::Ending`] of anything else.
    PartEndingOther,
    /// [`What::Returned`] of a call that makes something other than handle data.
    PartReturnedMaking,
    /// [`What::Returned`] of a get, where a device of any process has reported that it cannot share something.
    PartReturnedGetting,
    /// [`What::Returned`] of any other call.
    PartReturnedOther,
    /// [`What::Exporting`] and [`What::Exported`] of memory whose handle data has been got before, where the facts have
    /// [nothing](super::usual) that a rule looks for. A consumer that does not want this kind gets neither of the two.
    PartUsualGet,
}

impl FactKind {
    /// How many kinds there are.
    pub const COUNT: usize = Self::PartUsualGet as usize + 1;

    /// The kinds that [`What::kind`] tells apart in this one.
    pub(crate) fn parts(self) -> impl Iterator<Item = Self> {
        let parts: SmallVec<[Self; 3]> = match self {
            Self::Exporting => smallvec![Self::PartExportingUsm, Self::PartExportingOther, Self::PartUsualGet],
            Self::Exported => smallvec![Self::PartExportedUsm, Self::PartExportedOther, Self::PartUsualGet],
            Self::Ending => smallvec![Self::PartPuttingUsm, Self::PartPuttingOther, Self::PartEndingOther],
            Self::Returned => {
                smallvec![Self::PartReturnedMaking, Self::PartReturnedGetting, Self::PartReturnedOther]
            }
            whole => smallvec![whole],
        };
        parts.into_iter()
    }
}

impl What<'_> {
    /// Which kind of fact it is: of one that has parts, which part.
    #[inline]
    pub const fn kind(&self) -> FactKind {
        match self {
            Self::InvalidArgument(_) => FactKind::InvalidArgument,
            Self::Exporting(Exporting { source: Source::Allocation(..), .. }) => FactKind::PartExportingUsm,
            Self::Exporting(_) => FactKind::PartExportingOther,
            Self::Opening(_) => FactKind::Opening,
            Self::Creating(_) => FactKind::Creating,
            Self::Ending(ending)
                if matches!(ending.object.kind, Kind::MemHandle) && !ending.function.is_level_zero() =>
            {
                FactKind::PartPuttingUsm
            }
            Self::Ending(ending) if ending.object.kind.shares().is_some() => FactKind::PartPuttingOther,
            Self::Ending(_) => FactKind::PartEndingOther,
            Self::InvalidEnding(_) => FactKind::InvalidEnding,
            Self::InUse(_) => FactKind::InUse,
            Self::StaleUse(_) => FactKind::StaleUse,
            Self::Returned(returned) => match returned.of {
                Returning::Making => FactKind::PartReturnedMaking,
                Returning::Getting => FactKind::PartReturnedGetting,
                Returning::Other => FactKind::PartReturnedOther,
            },
            Self::Refused(_) => FactKind::Refused,
            Self::OpenedExpired(..) => FactKind::OpenedExpired,
            Self::OpenedUnknown(_) => FactKind::OpenedUnknown,
            Self::Dangling(..) => FactKind::Dangling,
            Self::Allocated(_) => FactKind::Allocated,
            Self::Exported(exported) if matches!(exported.handle.kind, Kind::MemHandle) => FactKind::PartExportedUsm,
            Self::Exported(_) => FactKind::PartExportedOther,
            Self::Opened(_) => FactKind::Opened,
            Self::Put(_) => FactKind::Put,
            Self::Closed(_) => FactKind::Closed,
            Self::Freed(_) => FactKind::Freed,
            Self::ContextReleased(_) => FactKind::ContextReleased,
            Self::OpenFailed(_) => FactKind::OpenFailed,
            Self::EndRefused(_) => FactKind::EndRefused,
            Self::Support(_) => FactKind::Support,
            Self::Descriptors(_) => FactKind::Descriptors,
            Self::LeftHandle(..) => FactKind::LeftHandle,
            Self::LeftMapping(..) => FactKind::LeftMapping,
            Self::LeftObject(..) => FactKind::LeftObject,
            Self::ProcessEnded(_) => FactKind::ProcessEnded,
            Self::CallsMissing(_) => FactKind::CallsMissing,
            Self::Finished => FactKind::Finished,
        }
    }
}
