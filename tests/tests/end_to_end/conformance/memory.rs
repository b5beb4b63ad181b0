//! What is specified for memory, and where the implementations differ.

use super::Implementation::{Ours, OursOnV1, V1, V1Bare, V1Refusing, V2, V2Alone, V2Checked, V2Refusing};
use super::{CRASH, Case, NULL, SEALED, TABLE, UNUSED};

/// All groups.
pub(super) const ALL: [&[Case]; 4] = [MEMORY, MEMORY_OF_TWO, MEMORY_NULLS, MEMORY_FAULTS];

const SILENT: &str = "v1 takes every failure of its memory provider for a success";
const ONE_CODE: &str = "v1 returned success, so the actual error is unknown behind it";
const WRITES: &str = "v1 writes its own descriptor over the producer's, in the caller's data";
const UNIQUE: &str = "every open is a mapping of its own, as with Level Zero";
const UNCHECKED: &str = "libumf adds the offset in the data to the mapping, whatever it is: a wild pointer";
const UNCOUNTED: &str = "libumf counts the opens of a mapping down below zero, and never unmaps it";
const INSIDE: &str = "libumf takes any address in a mapping for the mapping";
const MISMATCH: &str = "every mismatch between a close and its open is refused with the same code";
const BOTH: &str = "the header calls both out-parameters optional in one place, and neither in another";
const NEITHER: &str = "the adapter has a code of its own for a call without an out-parameter";
const STRANGER: &str = "the adapter looks it up like any other pointer, and does not find it";
const ADAPTERS: &str = "allocations are the adapter's own";
const TRANSLATED: &str = "libumf has a translation of its own for this one code";
const DATA: &str = "an argument that the driver finds wrong are the data";

/// Cases in one process.
#[rustfmt::skip]
pub(super) const MEMORY: &[Case] = &[
    ("get-and-put", "0 data 0", &[]),
    ("get-twice", "0 0 two 0 0", &[]),
    ("get-after-put", "0 0 0 0 0", &[]),
    ("put-of-one-of-two", "0 0 0", &[]),
    ("put-of-both-and-an-unrelated-file", "0 0 kept", &[]),
    ("put-after-release", "0 0", &[]),
    ("release-without-put", "0 0 0", &[]),
    ("open-and-close", "0 0 0", &[]),
    ("open-twice", "0 0 one 0 0 0", &[(Ours, "0 0 two 0 0 0", UNIQUE), (OursOnV1, "0 0 two 0 0 0", UNIQUE)]),
    ("open-a-hundred-times", "0", &[]),
    ("open-of-one-byte-more", "4", &[]),
    ("open-of-one-byte-less", "4", &[]),
    ("open-of-zeros", "45", &[(V1, "0 nothing", SILENT), (Ours, "4", SEALED), (OursOnV1, "4", SEALED)]),
    ("open-of-garbage", "45", &[(V1, "0 nothing", SILENT), (Ours, "4", SEALED), (OursOnV1, "4", SEALED)]),
    ("open-after-put", "0 0", &[(Ours, "0 4", SEALED), (OursOnV1, "0 4", SEALED)]),
    ("open-of-a-stale-handle", "0 0 0", &[(Ours, "0 4 0", SEALED), (OursOnV1, "0 4 0", SEALED)]),
    ("open-after-release", "0 45 0", &[(V1, "0 0 nothing 0", SILENT), (Ours, "0 4 0", SEALED), (OursOnV1, "0 4 0", SEALED)]),
    ("support", "0 yes", &[]),
    ("opened-shows-the-same-memory", "same two same 0", &[]),
    ("share-host-memory", "0 0 same 0 0", &[]),
    ("share-shared-memory", "0 0 same 0 0", &[]),
    ("get-inside-an-allocation", "0 0 same 0 0", &[]),
    ("get-of-two-neighbours", "same same 0 same 0", &[]),
    ("get-of-freed-memory", "0 45 untouched", &[]),
    ("get-of-freed-memory-of-a-pool", "0 0 touched", &[]),
    ("get-of-no-allocation", "45 untouched", &[]),
    ("get-of-opened-memory", "45 untouched 0", &[]),
    ("open-of-an-offset-beyond-the-end", "4", &[(V2, "0", UNCHECKED), (V2Alone, "0", UNCHECKED), (V2Checked, "0", UNCHECKED), (V2Refusing, "0", UNCHECKED), (V1, "0", UNCHECKED), (V1Refusing, "0", UNCHECKED)]),
    ("open-of-an-unknown-pid", "45", &[(V1, "0 nothing", SILENT), (Ours, "4", SEALED), (OursOnV1, "4", SEALED)]),
    ("open-of-no-pid", "45", &[(V1, "0 nothing", SILENT), (Ours, "4", SEALED), (OursOnV1, "4", SEALED)]),
    ("open-after-release-to-the-pool", "0 0 0", &[]),
    ("opened-twice-and-closed-once", "0 0 same 0", &[]),
    ("opened-outlives-the-free", "0 same 0", &[]),
    ("opened-is-freed", "11 same 0", &[]),
    ("close-twice", "0 45", &[(V2, "0 0", UNCOUNTED), (V2Alone, "0 0", UNCOUNTED), (V2Checked, "0 0", UNCOUNTED), (V1, "0 0", UNCOUNTED)]),
    ("open-after-a-close-too-many", "0 same 0", &[]),
    ("close-inside-a-mapping", "45 same", &[(V2, "0 same", INSIDE), (V2Alone, "0 same", INSIDE), (V2Checked, "0 same", INSIDE), (V1, "0 same", INSIDE)]),
    ("close-in-another-context", "5", &[(V2, "0", UNUSED), (V2Alone, "0", UNUSED), (V2Checked, "0", UNUSED), (V1, "0", UNUSED), (V2Refusing, "45", MISMATCH), (V1Refusing, "45", MISMATCH)]),
    ("close-of-own-memory", "45", &[]),
    ("close-of-no-mapping", "45", &[]),
];

/// Cases between two processes.
#[rustfmt::skip]
pub(super) const MEMORY_OF_TWO: &[Case] = &[
    ("open-leaves-the-data-alone", "0 untouched", &[(V1Bare, "0 changed", WRITES)]),
    ("open-after-the-put-of-another-process", "0", &[(Ours, "4", SEALED), (OursOnV1, "4", SEALED)]),
    ("open-after-the-end-of-another-process", "45", &[(V1, "0 nothing", SILENT), (Ours, "4", SEALED), (OursOnV1, "4", SEALED)]),
    ("open-without-permission", "45", &[(V1, "0 nothing", SILENT)]),
    ("open-without-descriptors", "38 0 0 none-lost", &[(V1, "0 nothing 0 0 none-lost", SILENT), (V1Refusing, "45 0 0 none-lost", ONE_CODE)]),
    ("open-of-another-process", "0 same 0 same", &[]),
    ("open-inside-an-allocation-of-another-process", "0 same 0", &[]),
    ("open-of-an-offset-beyond-the-end-of-another-process", "4", &[(V2, "0", UNCHECKED), (V2Alone, "0", UNCHECKED), (V2Checked, "0", UNCHECKED), (V2Refusing, "0", UNCHECKED), (V1, "0", UNCHECKED), (V1Refusing, "0", UNCHECKED)]),
    ("opened-outlives-the-free-of-another-process", "0 same 0", &[]),
    ("opened-outlives-another-process", "0 same 0 0", &[(Ours, "0 same 0 4", SEALED), (OursOnV1, "0 same 0 4", SEALED)]),
];

/// Null pointers, and other invalid arguments.
#[rustfmt::skip]
pub(super) const MEMORY_NULLS: &[Case] = &[
    ("get-null-context", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (V1, CRASH, TABLE), (V1Refusing, CRASH, TABLE), (OursOnV1, CRASH, TABLE), (V2Alone, "0", UNUSED)]),
    ("get-null-pointer", "45 untouched", &[]),
    ("get-null-data", "0 size", &[(V2Checked, "48 nothing", BOTH)]),
    ("get-null-size", "0 data", &[(V2Checked, "48 nothing", BOTH)]),
    ("get-null-data-and-size", "48", &[(V2, "45", NEITHER), (V2Alone, "45", NEITHER), (V1, "45", NEITHER)]),
    ("put-null-context", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (V1, CRASH, TABLE), (V1Refusing, CRASH, TABLE), (OursOnV1, CRASH, TABLE), (V2Alone, "0", UNUSED)]),
    ("put-null-data", "48", &[(V2, "0", NULL), (V2Alone, "0", NULL), (V1, "0", NULL)]),
    ("put-null-context-and-data", "48", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (V1, CRASH, TABLE), (V1Refusing, CRASH, TABLE), (OursOnV1, CRASH, TABLE), (V2Alone, "0", NULL)]),
    ("open-null-context", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (V1, CRASH, TABLE), (V1Refusing, CRASH, TABLE), (OursOnV1, CRASH, TABLE), (V2Alone, CRASH, NULL)]),
    ("open-null-device", "46", &[(V2, "2147483646", NULL), (V2Alone, "2147483646", NULL), (V1, "5", NULL)]),
    ("open-null-data", "48", &[(V2, CRASH, NULL), (V2Alone, CRASH, NULL), (V1, CRASH, NULL)]),
    ("open-null-result", "48", &[(V2, CRASH, NULL), (V2Alone, CRASH, NULL), (V1, CRASH, NULL)]),
    ("close-null-context", "46", &[(V2, CRASH, TABLE), (V2Refusing, CRASH, TABLE), (Ours, CRASH, TABLE), (V1, CRASH, TABLE), (V1Refusing, CRASH, TABLE), (OursOnV1, CRASH, TABLE), (V2Alone, "0", UNUSED)]),
    ("close-null-pointer", "48", &[(V2, "45", STRANGER), (V2Alone, "45", STRANGER), (V1, "45", STRANGER)]),
    ("free-null", "48", &[(V2, "11", STRANGER), (V2Alone, "11", STRANGER), (V1, "11", STRANGER), (Ours, "11", ADAPTERS), (OursOnV1, "11", ADAPTERS)]),
    ("free-of-no-allocation", "11", &[]),
    ("allocate-nothing", "64", &[(V2, "0", NULL), (V2Alone, "0", NULL), (V1, "0", NULL), (Ours, "0", ADAPTERS), (OursOnV1, "0", ADAPTERS)]),
];

/// Cases in which a function of the driver fails.
#[rustfmt::skip]
pub(super) const MEMORY_FAULTS: &[Case] = &[
    ("get-when-invalid-argument", "45 untouched", &[(V1, "0 untouched", SILENT)]),
    ("get-when-out-of-host-memory", "38 untouched", &[(V1, "0 untouched", SILENT), (V1Refusing, "45 untouched", ONE_CODE)]),
    ("get-when-out-of-device-memory", "39 untouched", &[(V1, "0 untouched", SILENT), (V1Refusing, "45 untouched", ONE_CODE)]),
    ("get-when-device-lost", "20 untouched", &[(V1, "0 untouched", SILENT), (V1Refusing, "45 untouched", ONE_CODE)]),
    ("get-when-insufficient-permissions", "1 untouched", &[(V1, "0 untouched", SILENT), (V1Refusing, "45 untouched", ONE_CODE)]),
    ("get-when-unsupported-feature", "44 untouched", &[(V1, "0 untouched", SILENT), (V1Refusing, "45 untouched", ONE_CODE)]),
    ("get-when-unsupported-size", "64 untouched", &[(V1, "0 untouched", SILENT), (V1Refusing, "45 untouched", ONE_CODE), (Ours, "4 untouched", TRANSLATED), (OursOnV1, "4 untouched", TRANSLATED)]),
    ("get-when-unknown", "2147483646 untouched", &[(V1, "0 untouched", SILENT), (V1Refusing, "45 untouched", ONE_CODE)]),
    ("open-when-invalid-argument", "45", &[(V1, "0 nothing", SILENT), (Ours, "4", DATA), (OursOnV1, "4", DATA)]),
    ("open-when-out-of-host-memory", "38", &[(V1, "0 nothing", SILENT), (V1Refusing, "45", ONE_CODE)]),
    ("open-when-out-of-device-memory", "39", &[(V1, "0 nothing", SILENT), (V1Refusing, "45", ONE_CODE)]),
    ("open-when-device-lost", "20", &[(V1, "0 nothing", SILENT), (V1Refusing, "45", ONE_CODE)]),
    ("open-when-insufficient-permissions", "1", &[(V1, "0 nothing", SILENT), (V1Refusing, "45", ONE_CODE)]),
    ("open-when-unsupported-feature", "44", &[(V1, "0 nothing", SILENT), (V1Refusing, "45", ONE_CODE)]),
    ("open-when-unsupported-size", "64", &[(V1, "0 nothing", SILENT), (V1Refusing, "45", ONE_CODE), (Ours, "4", TRANSLATED), (OursOnV1, "4", TRANSLATED)]),
    ("open-when-unknown", "2147483646", &[(V1, "0 nothing", SILENT), (V1Refusing, "45", ONE_CODE)]),
];
