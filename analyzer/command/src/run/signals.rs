//! Receives signals as events of a queue.
//!
//! urscope must survive them, to analyze the run afterwards. Signals of the terminal also reach the program, because it
//! is in the same process group. Signals that are sent only to urscope are forwarded. So is SIGHUP of a terminal that
//! is closed, if urscope is the leader of its session: nobody else gets it before the end of the leader. After the end
//! of the program, a second signal ends urscope at once, whatever it waits for. Slurm sends SIGTERM several times to a
//! step that it cancels: all of them count as one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::{fs, io, mem, process, sync::Arc, thread};

use rustix::process::{getpid, getsid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::exfiltrator::{WithOrigin, origin::Origin};
use signal_hook::iterator::{Signals, SignalsInfo};
use signal_hook::low_level::{emulate_default_handler, siginfo::Cause};

use super::descendants;
use crate::output::complain;

/// The signals that end a program by default, and those that launchers of parallel jobs send to their programs.
const CAUGHT: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Those by which a person or a system ends a program.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Whether [`until_interrupted`] takes signals.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// An event that urscope waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Child,
    Signal { number: i32, missed_by: MissedBy },
}

/// Who has not received a signal that urscope has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissedBy {
    Nobody,
    Program,
    /// The program, and the others of the process group, who receive it when the leader of the session has ended.
    Group,
}

/// Starts to receive signals.
///
/// Ignored signals stay ignored, so that the program ignores them too (`nohup urscope run …`): exec resets handlers,
/// but keeps ignored signals.
pub(crate) fn receive() -> io::Result<Receiver<Event>> {
    // With a handler, a write beyond the limit of file size fails, and does not end urscope.
    if !heeded(&[SIGXFSZ]).is_empty() {
        flag::register(SIGXFSZ, Arc::default())?;
    }
    let mut signals = SignalsInfo::<WithOrigin>::new(heeded(&CAUGHT).into_iter().chain([SIGCHLD]))?;
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut ending = 0;
        let mut is_terminated = false;
        for origin in signals.forever() {
            let Some(event) = event(&origin) else { continue };
            let is_waiting = sender.send(event).is_ok();
            if let Event::Signal { number, .. } = event
                && ENDING.contains(&number)
                && !(number == SIGTERM && mem::replace(&mut is_terminated, true))
            {
                ending += 1;
                if !is_waiting && !IS_SHOWN.load(Ordering::Relaxed) {
                    after_the_program(number, ending);
                }
            }
        }
    })?;
    Ok(receiver)
}

/// A signal while the run is judged: the second one of the whole run ends urscope.
fn after_the_program(number: i32, count: u32) {
    if count > 1 {
        drop(emulate_default_handler(number));
    }
    complain("the program has ended, and its traces are being judged; the next Ctrl-C ends urscope without a verdict");
}

/// Waits for SIGINT (Ctrl-C), SIGHUP (closed terminal) or SIGTERM. `tell` says so to the user, once these are caught.
pub(crate) fn until_interrupted(tell: impl FnOnce()) {
    let signals = Signals::new(heeded(&[SIGHUP, SIGINT, SIGTERM]));
    IS_SHOWN.store(true, Ordering::Relaxed);
    tell();
    if let Ok(mut signals) = signals {
        signals.forever().next();
    }
}

fn event(origin: &Origin) -> Option<Event> {
    if origin.signal == SIGCHLD {
        return Some(Event::Child);
    }
    // A program that signals its own process group (`kill 0`) has already received its signal.
    let own = origin.process.is_some_and(|sender| {
        let is_ours = |sender| sender == process::id() || descendants::is_descendant(sender, process::id());
        u32::try_from(sender.pid).is_ok_and(is_ours)
    });
    let leads = || getsid(None).is_ok_and(|leader| leader == getpid());
    let missed_by = match origin.cause {
        Cause::Sent(_) => MissedBy::Program,
        Cause::Kernel if origin.signal == SIGHUP && leads() => MissedBy::Group,
        _ => MissedBy::Nobody,
    };
    (!own).then_some(Event::Signal { number: origin.signal, missed_by })
}

/// Those of the signals that this process does not ignore.
fn heeded(signals: &[i32]) -> Vec<i32> {
    let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    signals.iter().copied().filter(|number| ignored >> (number - 1) & 1 == 0).collect()
}

/// Parses the mask of ignored signals, one bit each, in the text of /proc/self/status.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_parsed() {
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000001001\n"), 0x1001);
        assert_eq!(ignored(""), 0);
    }
}
