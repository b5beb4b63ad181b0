//! The state of the screen: the latest snapshot of the run, the focused pane, the open popup; and what keys do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use urscope_analyzer::{questions::Snapshot, report};

use super::rows::{self, Pace, Row, Whole};
use super::worker::Update;

pub(super) const HELP: &str = "\
q, Esc, Ctrl-C   quit (Esc first closes an open popup)
Tab, 1 2 3 4     go to the next pane, or to one by its number
up down, j k     go up or down a line; PageUp, PageDown, Home, End
Enter            show details of the line: a finding with both call stacks,
                 what a process holds
s                sort the pane by another column
p                pause, or continue
?                show this help

Findings: the findings so far; some rules report at the end of a process.
Processes: the calls of each process, and its calls per second.
Shared: handle data that is not put, opens that are not closed, and the bytes
  that these pin, of all processes, including what ended processes left.
Holders: the processes that hold the most.

The numbers are those of urscope check, stats and holders --format json.";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pane {
    #[default]
    Findings,
    Processes,
    Shared,
    Holders,
}

/// What all lines of a pane have in common.
pub(super) struct Layout {
    pub(super) name: &'static str,
    /// The orders in which the lines can be sorted.
    pub(super) orders: &'static [&'static str],
    pub(super) head: &'static [&'static str],
    /// The index of the column that takes the remaining width.
    pub(super) wide: usize,
    /// What is shown if there are no lines.
    pub(super) empty: &'static str,
}

impl Pane {
    pub(super) const ALL: [Self; 4] = [Self::Findings, Self::Processes, Self::Shared, Self::Holders];

    pub(super) const fn layout(self) -> Layout {
        let (name, orders, head, wide, empty): (_, &[_], &[_], _, _) = match self {
            Self::Processes => {
                ("Processes", &rows::PROCESS_ORDERS, &["rank", "pid", "program", "calls", "/s", "state"], 2, "none yet")
            }
            Self::Shared => ("Shared", &[], &["kind", "handles", "open", "bytes"], 0, "nothing is shared"),
            Self::Findings => ("Findings", &rows::FINDING_ORDERS, &["time", "grade", "finding"], 2, "none"),
            Self::Holders => (
                "Holders",
                &rows::HOLDER_ORDERS,
                &["process", "handles", "open", "bytes"],
                0,
                "no process holds anything",
            ),
        };
        Layout { name, orders, head, wide, empty }
    }

    fn turned(self, by: usize) -> Self {
        Self::ALL.into_iter().cycle().nth(self as usize + by).unwrap_or(self)
    }
}

/// A text that is shown over the panes.
#[derive(Debug)]
pub(super) struct Popup {
    pub(super) title: &'static str,
    pub(super) text: String,
    pub(super) scroll: u16,
}

/// The counts of the previous snapshot.
#[derive(Default)]
struct Before {
    calls: u64,
    errors: u64,
    last_ns: u64,
    of_processes: Vec<u64>,
}

impl Before {
    fn from_snapshot(snapshot: &Snapshot) -> Self {
        let (calls, errors) = snapshot.calls();
        let of_processes = snapshot.judgement.processes.iter().map(|seen| seen.calls).collect();
        Self { calls, errors, last_ns: snapshot.last_ns, of_processes }
    }
}

#[derive(Default)]
pub(super) struct Dashboard {
    pub(super) title: String,
    pub(super) snapshot: Option<Snapshot>,
    /// What the program waits for while there is no snapshot.
    pub(super) waiting: Option<String>,
    pub(super) failed: Option<String>,
    pub(super) pane: Pane,
    pub(super) popup: Option<Popup>,
    before: Option<Before>,
    /// Whether the run has not grown since the latest analysis.
    quiet: bool,
    orders: [usize; 4],
    selected: [usize; 4],
    paused: Arc<AtomicBool>,
}

impl Dashboard {
    /// A screen without a snapshot. The key for pausing toggles `paused`.
    pub(super) fn new(title: &str, waiting: String, paused: Arc<AtomicBool>) -> Self {
        Self { title: title.to_owned(), waiting: Some(waiting), paused, ..Self::default() }
    }

    /// Takes an update. Returns whether the screen has to be redrawn.
    pub(super) fn take(&mut self, update: Update) -> bool {
        match update {
            Update::Snapshot(snapshot) => {
                self.before = self.snapshot.take().as_ref().map(Before::from_snapshot);
                self.snapshot = Some(*snapshot);
                (self.waiting, self.failed, self.quiet) = (None, None, false);
            }
            Update::Quiet => return !std::mem::replace(&mut self.quiet, true),
            Update::Waiting(what) if self.snapshot.is_none() => {
                let changed = self.waiting.as_ref() != Some(&what);
                (self.waiting, self.failed) = (Some(what), None);
                return changed;
            }
            Update::Waiting(_) => return false,
            Update::Failed(why) => self.failed = Some(why),
        }
        true
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.load(Relaxed)
    }

    /// Calls and errors per second between the last two snapshots; `None` before the second one.
    pub(super) fn rates(&self) -> Option<[String; 2]> {
        let snapshot = self.snapshot.as_ref()?;
        let (before, passed) = self.passed()?;
        let (calls, errors) = snapshot.calls();
        let counts = [calls.saturating_sub(before.calls), errors.saturating_sub(before.errors)];
        Some(counts.map(|count| rows::rate(count, passed)))
    }

    /// The previous snapshot, and the time of the run that has passed since, in nanoseconds.
    fn passed(&self) -> Option<(&Before, u64)> {
        let snapshot = self.snapshot.as_ref()?;
        let before = self.before.as_ref()?;
        // The time of the traces does not advance without calls.
        let passed = if self.quiet { u64::MAX } else { snapshot.last_ns.saturating_sub(before.last_ns) };
        Some((before, passed)).filter(|(_, passed)| *passed > 0)
    }

    pub(super) fn rows(&self, pane: Pane) -> Vec<Row> {
        let Some(snapshot) = &self.snapshot else { return Vec::new() };
        let order = self.orders.get(pane as usize).copied().unwrap_or_default();
        match pane {
            Pane::Processes => {
                let pace = self.passed().filter(|_| snapshot.judgement.is_running());
                let pace = pace.map(|(before, passed)| Pace { before: &before.of_processes, passed });
                rows::processes(snapshot, order, pace.as_ref())
            }
            Pane::Shared => rows::shared(snapshot),
            Pane::Findings => rows::findings(snapshot, order),
            Pane::Holders => rows::holders(snapshot, order),
        }
    }

    pub(super) fn selected(&self, pane: Pane) -> usize {
        self.selected.get(pane as usize).copied().unwrap_or_default()
    }

    pub(super) fn order(&self, pane: Pane) -> Option<&'static str> {
        pane.layout().orders.get(self.orders.get(pane as usize).copied().unwrap_or_default()).copied()
    }

    /// Handles a key. Returns whether to continue.
    pub(super) fn press(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, &mut self.popup) {
            (KeyCode::Char('c'), _) if control => return false,
            (KeyCode::Esc | KeyCode::Char('q' | '?') | KeyCode::Enter, Some(_)) => self.popup = None,
            (code, Some(popup)) => {
                if let Some(step) = step(code) {
                    let last = popup.text.lines().count().saturating_sub(1);
                    popup.scroll = usize::from(popup.scroll).saturating_add_signed(step).min(last) as u16;
                }
            }
            (KeyCode::Esc | KeyCode::Char('q'), None) => return false,
            (KeyCode::Tab | KeyCode::Right | KeyCode::Char('l'), None) => self.pane = self.pane.turned(1),
            (KeyCode::BackTab | KeyCode::Left | KeyCode::Char('h'), None) => self.pane = self.pane.turned(3),
            (KeyCode::Char(digit @ '1'..='4'), None) => {
                self.pane = Pane::ALL.get(digit as usize - '1' as usize).copied().unwrap_or(self.pane);
            }
            (KeyCode::Char('s'), None) => self.sort(),
            (KeyCode::Char('p' | ' '), None) => drop(self.paused.fetch_xor(true, Relaxed)),
            (KeyCode::Char('?'), None) => {
                self.popup = Some(Popup { title: "Keys", text: HELP.into(), scroll: 0 });
            }
            (KeyCode::Enter, None) => self.open(),
            (code, None) => self.choose(step(code).unwrap_or_default()),
        }
        true
    }

    fn sort(&mut self) {
        let orders = self.pane.layout().orders.len().max(1);
        if let Some(order) = self.orders.get_mut(self.pane as usize) {
            *order = (*order + 1) % orders;
        }
        self.choose(isize::MIN);
    }

    fn choose(&mut self, step: isize) {
        let last = self.rows(self.pane).len().saturating_sub(1);
        if let Some(selected) = self.selected.get_mut(self.pane as usize) {
            *selected = selected.saturating_add_signed(step).min(last);
        }
    }

    fn open(&mut self) {
        let mut rows = self.rows(self.pane);
        let selected = self.selected(self.pane).min(rows.len().saturating_sub(1));
        let findings = self.snapshot.as_ref().map(|snapshot| &snapshot.judgement.findings);
        let text = match (rows.drain(..).nth(selected).map(|row| row.whole), findings) {
            (Some(Whole::Text(text)), _) => text,
            (Some(Whole::Finding(index)), Some(findings)) => {
                findings.get(index).and_then(|finding| report::finding(finding).ok()).unwrap_or_default()
            }
            _ => return,
        };
        if !text.is_empty() {
            self.popup = Some(Popup { title: self.pane.layout().name, text, scroll: 0 });
        }
    }
}

/// By how many lines a key moves.
fn step(code: KeyCode) -> Option<isize> {
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::PageUp => -10,
        KeyCode::PageDown => 10,
        KeyCode::Home | KeyCode::Char('g') => isize::MIN,
        KeyCode::End | KeyCode::Char('G') => isize::MAX,
        _ => return None,
    })
}
