//! Writes the current state of a run once: for logs, for programs, and for terminals without cursor control.

use std::io::{self, BufWriter, Write};
use std::sync::{Arc, atomic::AtomicBool};
use std::{error::Error, path::PathBuf, process::ExitCode};

use urscope_analyzer::questions::{self, Snapshot};
use urscope_analyzer::{Options, report};
use urscope_schema::short_size;

use super::dashboard::{Dashboard, Pane};
use super::worker::{Update, waiting};
use crate::{arguments::PlainFormat, output::written};

/// Writes the current state of the run to standard output.
pub(crate) fn show(paths: &[PathBuf], options: &Options, format: PlainFormat) -> Result<ExitCode, Box<dyn Error>> {
    let snapshot = questions::snapshot(paths, options).map_err(|error| -> Box<dyn Error> {
        if paths.iter().all(|path| path.exists()) { error.into() } else { waiting(paths).into() }
    })?;
    let mut out = BufWriter::new(io::stdout().lock());
    let shown = match format {
        PlainFormat::Json => report::json(&snapshot, &mut out),
        PlainFormat::Text => text(&snapshot, &mut out),
    };
    written(shown.and_then(|()| out.flush()), "the answer cannot be written to standard output")?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the panes one after the other, in columns.
fn text(snapshot: &Snapshot, out: &mut impl Write) -> io::Result<()> {
    if let Some(happened) = report::happened(&snapshot.judgement, false)? {
        writeln!(out, "{happened}")?;
    }
    writeln!(out, "{}", report::headline(&snapshot.judgement, false)?)?;
    if let Some(reason) = &snapshot.judgement.reason {
        writeln!(out, "  {}", urscope_analyzer::plain::plain(reason))?;
    }
    let now = short_size(snapshot.holders.pinned_bytes);
    let peak = short_size(snapshot.stats.peak.pinned_bytes);
    writeln!(out, "pinned {now}, at most {peak}")?;
    let plain = snapshot.plain().ok_or_else(|| io::Error::other("the snapshot cannot be converted to plain text"))?;
    let mut dashboard = Dashboard::new("", String::new(), Arc::new(AtomicBool::new(false)));
    dashboard.take(Update::Snapshot(Box::new(plain)));
    for pane in Pane::ALL {
        let layout = pane.layout();
        let rows: Vec<_> = dashboard.rows(pane).into_iter().map(|row| row.cells).collect();
        if rows.is_empty() {
            continue;
        }
        writeln!(out, "\n{}", layout.name.to_lowercase())?;
        let width =
            |column| rows.iter().filter_map(|row| row.get(column)).map(|cell: &String| cell.chars().count()).max();
        let head: Vec<_> = layout.head.iter().map(|&name| name.to_owned()).collect();
        // Empty columns are omitted.
        let widths: Vec<_> = (0..).zip(&head).map(|(column, name)| (name.len(), width(column).unwrap_or(0))).collect();
        for row in std::iter::once(&head).chain(&rows) {
            let columns = row.iter().zip(&widths).filter(|(_, (_, cells))| *cells > 0);
            let cells: Vec<_> = columns.map(|(cell, (name, cells))| format!("{cell:<0$}", name.max(cells))).collect();
            writeln!(out, "  {}", cells.join("  ").trim_end())?;
        }
    }
    Ok(())
}
