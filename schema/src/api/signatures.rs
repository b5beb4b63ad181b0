//! Signatures that upstream changed without another version number.
//!
//! A row has the signature of the newest release. A build of Unified Runtime in which a function has another one is
//! known by the length of a table, as slots are ([`Function::slot_in`]); there the function is left to the adapter.
//! So far such builds lie between two releases, which agree in all rows (`schema/tests/schema/releases.rs`).

use super::{Function, Table};

/// What was different before a change.
struct Former {
    /// The functions that are left alone: those that changed, and those that make no sense without them.
    functions: &'static [Function],
    /// What fills a table that has one of these lengths in all builds before the change, and in no release after it.
    table: (&'static str, &'static [usize]),
    difference: &'static str,
}

const FORMER: &[Former] = &[
    // intel/llvm #20490, 2025-11-03. The table had these lengths until 2025-12-03.
    Former {
        functions: &[
            Function::urIPCGetMemHandleExp,
            Function::urIPCPutMemHandleExp,
            Function::urIPCOpenMemHandleExp,
            Function::urIPCCloseMemHandleExp,
        ],
        table: ("urGetEnqueueExpProcAddrTable", &[7, 8]),
        difference: "urIPCGetMemHandleExp may still copy into a buffer of the caller",
    },
    // intel/llvm #22387, 2026-06-24. The table had this length until 2026-06-30.
    Former {
        functions: &[Function::urEventCreateExp],
        table: ("urGetGraphExpProcAddrTable", &[9]),
        difference: "urEventCreateExp may still have no parameter for the device",
    },
];

/// The number of functions in the table of the IPC functions of the newest release, which has grown at its end so far.
/// A longer one may have others in between, and nothing tells which.
const IPC_FUNCTIONS: usize = 11;

impl Function {
    /// How the function may differ from its row in an adapter; `None` if it does not, as far as is known. `length`
    /// returns the number of slots that the adapter's function of that name fills, 0 if it has none.
    pub fn former_signature(self, length: impl Fn(&str) -> usize) -> Option<&'static str> {
        if self.slot().0 == Table::IPCExp && length("urGetIPCExpProcAddrTable") > IPC_FUNCTIONS {
            return Some("its table of IPC functions is longer than that of any known release, so they may be others");
        }
        FORMER.iter().find_map(|Former { functions, table: (getter, lengths), difference }| {
            (functions.contains(&self) && lengths.contains(&length(getter))).then_some(*difference)
        })
    }
}
