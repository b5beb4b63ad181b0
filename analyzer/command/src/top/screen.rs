//! Owns the terminal: sets it up, draws on it, and restores it however the program ends.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::{error::Error, io, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use urscope_analyzer::Options;

use super::worker::{self, Update};
use super::{dashboard::Dashboard, draw::Painter};

/// The interval at which updates and signals are checked while no key is pressed.
const CHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Shows a run until a key or a signal ends it.
pub(super) fn show(title: &str, paths: &[PathBuf], options: &Options, color: bool) -> Result<ExitCode, Box<dyn Error>> {
    let signal = Arc::new(AtomicUsize::new(0));
    let paused = Arc::default();
    let shown = (|| -> io::Result<()> {
        for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            flag::register_usize(number, Arc::clone(&signal), number as usize)?;
        }
        let updates = worker::start(paths, options, &paused)?;
        let mut dashboard = Dashboard::new(title, worker::waiting(paths), Arc::clone(&paused));
        // `try_init` also installs a panic hook that restores the terminal.
        let mut terminal = Restored(ratatui::try_init()?);
        turn(&mut terminal.0, &mut dashboard, &updates, &signal, Painter { color })
    })();
    match (shown, signal.load(Relaxed)) {
        (_, number @ 1..) => Ok(ExitCode::from(128 + number as u8)),
        (Ok(()), _) => Ok(ExitCode::SUCCESS),
        (Err(error), _) => {
            let once = "--once writes the current state of the run";
            Err(format!("the terminal cannot be used any more: {error}; {once}").into())
        }
    }
}

/// A terminal that is restored when this is dropped.
struct Restored(DefaultTerminal);

impl Drop for Restored {
    fn drop(&mut self) {
        // A terminal that is gone cannot be restored.
        drop(ratatui::try_restore());
    }
}

/// Waits for [`CHECK_INTERVAL`] or until a key is pressed. Returns whether the terminal still exists. Keys must not be
/// read from a terminal that is gone, because the reader would poll it for ever.
fn wait_for_key() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut terminal, Some(&CHECK_INTERVAL)) {
        // The caller checks for signals.
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let [terminal] = terminal;
    Ok(!terminal.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL))
}

fn turn(
    terminal: &mut DefaultTerminal,
    dashboard: &mut Dashboard,
    updates: &Receiver<Update>,
    signal: &AtomicUsize,
    painter: Painter,
) -> io::Result<()> {
    let mut changed = true;
    while signal.load(Relaxed) == 0 {
        loop {
            match updates.try_recv() {
                Ok(update) => changed |= dashboard.take(update),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(io::Error::other("the analysis has stopped")),
            }
        }
        if changed {
            terminal.draw(|frame| painter.draw(dashboard, frame))?;
            changed = false;
        }
        if !wait_for_key()? {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => {
                    if !dashboard.press(key) {
                        return Ok(());
                    }
                    changed = true;
                }
                Event::Resize(..) => changed = true,
                _ => {}
            }
        }
    }
    Ok(())
}
