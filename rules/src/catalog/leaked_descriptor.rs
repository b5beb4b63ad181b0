//! # What it does
//!
//! Reports a descriptor of physical memory that a process exported and still had open when it ended, although it had
//! released the memory before. CUDA: the descriptors of `cuMemExportToShareableHandle`.
//!
//! Nothing is reported while the memory has another reference in the process, or is mapped there: libraries keep a
//! descriptor as long as its memory. Nothing is reported either where it is not certain that the descriptor was still
//! open, as in a process that was killed. Level Zero and Unified Runtime have calls that give handle data back: see
//! `leaked-handle`.
//!
//! # Why it is bad
//!
//! An open descriptor is a reference to the memory: the driver frees it only when it is released, unmapped and all its
//! descriptors are closed, in every process. A descriptor that is sent to another process is copied, and the sender's
//! own stays open. A long-running process runs out of device memory, which no call accounts for, and of descriptors.
//!
//! # Example
//!
//! The process that exports the memory:
//!
//! ```cpp
//! CUmemGenericAllocationHandle memory;
//! cuMemCreate(&memory, size, &wanted, 0);
//! int descriptor;
//! cuMemExportToShareableHandle(
//!     &descriptor, memory,
//!     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
//!     0);
//! send_copy_of(descriptor);
//! cuMemRelease(memory);
//! // Wrong: the open descriptor keeps the memory.
//! ```
//!
//! Fixed:
//!
//! ```cpp
//! CUmemGenericAllocationHandle memory;
//! cuMemCreate(&memory, size, &wanted, 0);
//! int descriptor;
//! cuMemExportToShareableHandle(
//!     &descriptor, memory,
//!     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
//!     0);
//! send_copy_of(descriptor);
//! close(descriptor);
//! cuMemRelease(memory);
//! ```
//!
//! # Bad trace
//!
//! ```text
//! producer: physical m ipc cuda
//! producer: get-physical m -> d cuda
//! producer: release-physical m cuda
//! producer: keeps d
//! ```
//!
//! # Good trace
//!
//! A descriptor may be kept as long as its memory, here also while that is mapped. The number of one that is closed
//! comes again.
//!
//! ```text
//! producer: physical m ipc cuda
//! producer: get-physical m -> c cuda
//! producer: release-physical m cuda
//! producer: physical n ipc cuda
//! producer: get-physical n -> c cuda
//! producer: physical o ipc cuda
//! producer: map o -> v cuda
//! producer: get-physical o -> d cuda
//! producer: release-physical o cuda
//! producer: keeps c
//! producer: keeps d
//! ```
//!
//! # What to do
//!
//! Close the descriptor (close(2)) once it is sent: who received it has a copy. Where it is used again and again, keep
//! one for the memory, and close it with the release.

use super::memory::one_of;
use super::wording::{call, left, of_size};
use super::{Check, Rule, When};
use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind, What};

pub(super) static RULE: Rule = Rule {
    code: "leaked-descriptor",
    severity: Severity::Warning,
    when: When::End,
    title: "an exported descriptor is never closed, and keeps memory that was released",
    sentence: "exported a descriptor of {what} and never closed it",
    facts: &[FactKind::LeftDescriptor],
    check: Check::Stateless(check),
};

fn check(fact: &Fact<'_>) -> Option<Finding> {
    let What::LeftDescriptor(how, number, descriptor) = fact.what else { return None };
    let released = descriptor.released?;
    one_of(how, || {
        let who = fact.actor();
        let what = descriptor.memory;
        let size = of_size(descriptor.size);
        let exported = call(descriptor.got);
        let released_in = call(released);
        let (end, most) = left(how);
        let message = format!(
            "{who} exported {what}{size} in {exported} as descriptor {number} and never closed the descriptor, which kept the memory \
             allocated after its release in {released_in}; {end}"
        );
        let finding = Finding::new(&RULE, descriptor.got, what, message).other(Some(released));
        finding
            .values(descriptor.size, None)
            .at_most(most)
            .advice("close(2) the descriptor once it is sent: the receiver has a copy")
    })
}
