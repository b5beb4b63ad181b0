//! The rules, one file or folder each, and their register.
//!
//! A rule consumes [facts](crate::tracker::fact) and reports what they prove. One that needs a memory
//! of its own keeps it in its own file or folder and gets it through [`RuleState`]; no rule knows
//! another one, and the tracker knows none. The head of its file is its documentation: the two traces
//! in it are its test (`rules/pages`), and a test compiles its example.

mod memory;
mod wording;

use crate::rule::{Check, Rule, RuleState, When};

macro_rules! register {
    ($($rule:ident;)*) => {
        $(mod $rule;)*

        /// All rules, by name.
        pub static RULES: &[&Rule] = &[$(&$rule::RULE,)*];
    };
}

// A rule is its file or folder and its line here. (`cargo fmt` does not look into macros: format a new
// rule with `rustfmt`; `scripts/test` checks it.)
register! {
    altered_handle;
    calls_lost;
    churn;
    close_of_unknown;
    closed_while_in_use;
    descriptor_closed_twice;
    descriptor_growth;
    double_close;
    double_put;
    double_release;
    export_of_import;
    export_without_flag;
    exporter_gone;
    freed_while_exported;
    freed_while_in_use;
    freed_while_open;
    garbage_handle;
    get_of_freed;
    get_without_open;
    invalid_argument;
    leaked_descriptor;
    leaked_event;
    leaked_handle;
    leaked_mapping;
    leaked_physical_memory;
    lost_handles;
    lost_offset;
    never_signalled;
    no_calls_seen;
    open_close_mismatch;
    open_in_producer;
    out_of_bounds;
    overwritten_handle;
    permission_denied;
    profiled_ipc_event;
    put_after_free;
    put_of_unknown;
    race;
    refused_call;
    refused_open;
    released_while_mapped;
    size_mismatch;
    slab_exposed;
    slow_call;
    stale_handle;
    stale_mapping;
    success_without_result;
    unreturned_gets;
    unsupported_device;
    untraced_peer;
    use_after_close;
    use_after_free;
    use_after_put;
    wrong_context;
    wrong_device;
    wrong_kind;
    wrong_usm;
}

/// The rule for a run without IPC calls.
pub static NO_CALLS_SEEN: &Rule = &no_calls_seen::RULE;

impl Rule {
    /// The rule of that name.
    pub fn named(code: &str) -> Option<&'static Self> {
        RULES.iter().copied().find(|rule| rule.code == code)
    }
}
