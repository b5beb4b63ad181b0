//! The progress bar of an analysis. It appears after one second.

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::{path::PathBuf, thread, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use urscope_analyzer::analysis::{Analysis, Progress};
use urscope_analyzer::{AnalysisError, Options};

/// An analysis that takes less than this has no progress bar.
const SHOW_AFTER: Duration = Duration::from_secs(1);
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const STYLE: &str = "{bar:40} {percent:>3} %  {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";

/// Analyzes traces. Shows the progress if standard error is a terminal.
pub(crate) fn analyze_watched<'a>(paths: &'a [PathBuf], options: &'a Options) -> Result<Analysis<'a>, AnalysisError> {
    let analyze = || Analysis::run(paths, options, &mut ());
    if !io::stderr().is_terminal() {
        return analyze();
    }
    thread::scope(|scope| {
        let (over, wait) = mpsc::channel::<()>();
        let progress = &options.progress;
        scope.spawn(move || {
            if wait.recv_timeout(SHOW_AFTER) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = bar(progress);
            while wait.recv_timeout(REDRAW_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                bar.set_length(progress.all().max(progress.read()));
                bar.set_position(progress.read());
            }
            bar.finish_and_clear();
        });
        let analysis = analyze();
        drop(over);
        analysis
    })
}

fn bar(progress: &Progress) -> ProgressBar {
    let bar = ProgressBar::new(progress.all());
    match ProgressStyle::with_template(STYLE) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
