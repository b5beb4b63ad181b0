//! The pages of the rules, for `urscope explain`, reports and `docs/rules.md`, and the scenarios that their examples
//! are written in.
//!
//! The text of a page is the head of its rule's file. None of it is linked into the shim: this crate depends on the
//! rules, and the rules never on it.

#![forbid(unsafe_code)]

mod page;
pub mod scenario;

pub use page::{Page, rules_counted, rules_md};
