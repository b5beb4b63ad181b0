//! `urscope --version`: the version, the commit if the build gives one, and the versions of the formats.
//!
//! `-V` prints the version alone. Nothing here reads the clock or the repository, so a build gives the same bytes
//! again.

use std::sync::LazyLock;

use urscope_analyzer::{analysis, questions};
use urscope_schema::trace;

/// What `--version` prints behind the name of the command.
pub(super) fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        // Set by whoever builds a release: URSCOPE_COMMIT=$(git rev-parse HEAD) cargo build --release.
        let commit = option_env!("URSCOPE_COMMIT").map_or_else(String::new, |commit| format!(" (commit {commit})"));
        format!(
            "{}{commit}\ntrace format {}\nreport format {}\nnode report format {}\nanswer format {}",
            env!("CARGO_PKG_VERSION"),
            trace::FORMAT_VERSION,
            analysis::VERSION,
            analysis::REPORT_VERSION,
            questions::VERSION,
        )
    });
    &TEXT
}
