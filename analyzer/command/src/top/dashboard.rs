//! What is looked at: the run as it was heard last, the pane that has the keys, what is shown whole, and what each key does.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use urscope_analyzer::{questions::Snapshot, report};

use super::{
    rows::{self, Pace, Row, Whole},
    worker::Update,
};

/// What the keys do, for whoever asks.
pub(super) const HELP: &str = "\
q, Esc, Ctrl-C   end (Esc closes first what is open)
Tab, 1 2 3 4     the next pane, or that one
up down, j k     a line up or down; PageUp, PageDown, Home, End
Enter            all about the line: a finding with both call stacks,
                 what a process holds
s                sort the pane by something else
p                pause, and go on
?                this

Processes: how many calls of each were seen, how many in a second.
Shared: handle data that is not put, opens that are not closed and the bytes
  that stay pinned, of all processes; of those that ended, what they left.
Findings: what the rules say so far; some say more when a process has ended.
Holders: who holds the most.

The numbers are those of urscope check, stats and holders --format json.";

/// The panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    Processes,
    Shared,
    Findings,
    Holders,
}

impl Pane {
    pub(super) const ALL: [Self; 4] = [Self::Processes, Self::Shared, Self::Findings, Self::Holders];

    /// What it is called.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Processes => "Processes",
            Self::Shared => "Shared",
            Self::Findings => "Findings",
            Self::Holders => "Holders",
        }
    }

    /// By what it can be sorted.
    pub(super) const fn orders(self) -> &'static [&'static str] {
        match self {
            Self::Processes => &rows::PROCESS_ORDERS,
            Self::Shared => &[],
            Self::Findings => &rows::FINDING_ORDERS,
            Self::Holders => &rows::HOLDER_ORDERS,
        }
    }

    fn turned(self, by: usize) -> Self {
        Self::ALL.into_iter().cycle().nth(self as usize + by).unwrap_or(self)
    }
}

/// A text that is open over the panes.
#[derive(Debug)]
pub(super) struct Popup {
    pub(super) title: &'static str,
    pub(super) text: String,
    pub(super) scroll: u16,
}

/// How much there was at the hearing before.
#[derive(Default)]
struct Before {
    calls: u64,
    errors: u64,
    last_ns: u64,
    of_processes: Vec<u64>,
}

impl Before {
    fn of(snapshot: &Snapshot) -> Self {
        let (calls, errors) = snapshot.calls();
        let of_processes = snapshot.judgement.processes.iter().map(|seen| seen.calls).collect();
        Self { calls, errors, last_ns: snapshot.last_ns, of_processes }
    }
}

/// All of it.
pub(super) struct Dashboard {
    pub(super) title: String,
    pub(super) snapshot: Option<Snapshot>,
    /// What is waited for, as long as there is nothing.
    pub(super) waiting: Option<String>,
    /// Why the run could not be heard the last time.
    pub(super) failed: Option<String>,
    pub(super) pane: Pane,
    pub(super) popup: Option<Popup>,
    before: Option<Before>,
    /// Nothing has happened since the last analysis.
    quiet: bool,
    orders: [usize; 4],
    selected: [usize; 4],
    paused: Arc<AtomicBool>,
}

impl Dashboard {
    /// One with nothing on it. `paused` is what its key sets.
    pub(super) fn new(title: &str, waiting: String, paused: Arc<AtomicBool>) -> Self {
        Self {
            title: title.to_owned(),
            snapshot: None,
            waiting: Some(waiting),
            failed: None,
            pane: Pane::Processes,
            popup: None,
            before: None,
            quiet: false,
            orders: [0; 4],
            selected: [0; 4],
            paused,
        }
    }

    /// Takes what is new; says whether anything is to be drawn anew.
    pub(super) fn take(&mut self, updates: Update) -> bool {
        match updates {
            Update::Heard(snapshot) => {
                self.before = self.snapshot.take().as_ref().map(Before::of);
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

    /// Whether it is paused.
    pub(super) fn is_paused(&self) -> bool {
        self.paused.load(Relaxed)
    }

    /// Calls and errors in a second, between the last two hearings; nothing before the second one.
    pub(super) fn rates(&self) -> Option<[String; 2]> {
        let snapshot = self.snapshot.as_ref()?;
        let (before, passed) = self.passed()?;
        let (calls, errors) = snapshot.calls();
        let counts = [calls.saturating_sub(before.calls), errors.saturating_sub(before.errors)];
        Some(counts.map(|count| rows::rate(count, passed)))
    }

    /// The hearing before, and how much time of the run has passed since.
    fn passed(&self) -> Option<(&Before, u64)> {
        let (snapshot, before) = (self.snapshot.as_ref()?, self.before.as_ref()?);
        // While nothing is called the time of the traces stands still.
        let passed = if self.quiet { u64::MAX } else { snapshot.last_ns.saturating_sub(before.last_ns) };
        Some((before, passed)).filter(|(_, passed)| *passed > 0)
    }

    /// The lines of a pane.
    pub(super) fn rows(&self, pane: Pane) -> Vec<Row> {
        let Some(snapshot) = &self.snapshot else { return Vec::new() };
        let order = self.orders.get(pane as usize).copied().unwrap_or_default();
        match pane {
            Pane::Processes => {
                let pace = self.passed().filter(|_| snapshot.judgement.goes_on());
                let pace = pace.map(|(before, passed)| Pace { before: &before.of_processes, passed });
                rows::processes(snapshot, order, pace.as_ref())
            }
            Pane::Shared => rows::shared(snapshot),
            Pane::Findings => rows::findings(snapshot, order),
            Pane::Holders => rows::holders(snapshot, order),
        }
    }

    /// Which line of a pane is chosen.
    pub(super) fn selected(&self, pane: Pane) -> usize {
        self.selected.get(pane as usize).copied().unwrap_or_default()
    }

    /// By what a pane is sorted.
    pub(super) fn order(&self, pane: Pane) -> Option<&'static str> {
        pane.orders().get(self.orders.get(pane as usize).copied().unwrap_or_default()).copied()
    }

    /// Does what a key says; says whether to go on.
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
        let orders = self.pane.orders().len().max(1);
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

    /// Opens the line that is chosen.
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
            self.popup = Some(Popup { title: self.pane.name(), text, scroll: 0 });
        }
    }
}

/// How many lines a key moves.
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
