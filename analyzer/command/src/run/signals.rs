//! Signals, as events in a queue.
//!
//! urscope must outlive them, to judge what the program did. Those that come from the terminal reach the program anyway,
//! because it is in the same process group; those that somebody sends to urscope alone are to be forwarded.

use std::{
    fs, io, process,
    sync::mpsc::{self, Receiver},
    thread,
};

use signal_hook::{
    consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2},
    iterator::{
        Signals, SignalsInfo,
        exfiltrator::{WithOrigin, origin::Origin},
    },
    low_level::siginfo::Cause,
};

use super::descendants;

/// What ends a program by default, and what launchers of parallel jobs use to talk to theirs.
const CAUGHT: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Something that happened to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// At least one child ended.
    Child,
    /// A signal came.
    Signal {
        /// Which.
        number: i32,
        /// Whether it came to us alone, so that the program does not know of it.
        forward: bool,
    },
}

/// Begins to receive signals.
///
/// A signal that is ignored stays ignored, so that it does for the program (`nohup urscope run …`): handlers are not
/// inherited over exec, but ignoring is.
pub(crate) fn receive() -> io::Result<Receiver<Event>> {
    let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    let caught = CAUGHT.into_iter().filter(|number| ignored >> (number - 1) & 1 == 0);
    let mut signals = SignalsInfo::<WithOrigin>::new(caught.chain([SIGCHLD]))?;
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("signals".into()).spawn(move || {
        for origin in signals.forever() {
            if event(&origin).is_some_and(|event| sender.send(event).is_err()) {
                break;
            }
        }
    })?;
    Ok(receiver)
}

/// Waits for the first of what ends a program that is watched by a person: Ctrl-C, a closed terminal, a launcher that gives up.
pub(crate) fn until_interrupted() {
    let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    let caught = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|number| ignored >> (number - 1) & 1 == 0);
    if let Ok(mut signals) = Signals::new(caught) {
        signals.forever().next();
    }
}

fn event(origin: &Origin) -> Option<Event> {
    if origin.signal == SIGCHLD {
        return Some(Event::Child);
    }
    // A program that signals its own process group (`kill 0`) means itself, and has had its signal already.
    let own = origin.process.is_some_and(|sender| {
        u32::try_from(sender.pid).is_ok_and(|sender| descendants::is_descendant(sender, process::id()))
    });
    (!own).then_some(Event::Signal { number: origin.signal, forward: matches!(origin.cause, Cause::Sent(_)) })
}

/// The set of ignored signals, one bit each, from the text of /proc/self/status.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_a_mask() {
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000001001\n"), 0x1001);
        assert_eq!(ignored(""), 0);
    }
}
