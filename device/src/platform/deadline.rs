//! Waits: they spin, then sleep, and spin again shortly before their deadline.
//!
//! An idle processor takes tens of microseconds to wake up, longer than most commands take. So a wait
//! spins before its first sleep. If spinning was in vain, because the work took longer or no processor
//! was free for it, the next waits of the thread sleep at once. A thread that sleeps until a time wakes
//! up late, because Linux joins timers that end within 50 us (PR_SET_TIMERSLACK(2const)). So a wait
//! with a timeout asks for exact timers, sleeps until shortly before its end, and spins from then on.
//! Must never spin for longer than [`SPIN_BEFORE_SLEEP`] and [`SPIN_BEFORE_END`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{cell::Cell, hint, marker::PhantomData, mem, sync::OnceLock};

use parking_lot::{Condvar, MutexGuard};

/// How long a wait spins before it sleeps.
const SPIN_BEFORE_SLEEP: Duration = Duration::from_micros(50);

/// How many waits of a thread may spin in vain in a row, before its next waits sleep at once.
const MAX_CREDIT: i8 = 4;
/// How many waits then sleep at once, before one spins again.
const SLEEPS: i8 = 32;
/// How long before its end a wait wakes up and spins.
const SPIN_BEFORE_END: Duration = Duration::from_micros(75);
/// How often a wait lets the processor pause before it looks again.
const PAUSES: u32 = 16;

/// When a wait ends at the latest; [`NEVER`](Self::NEVER) is a deadline, too.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

/// A wait that has begun.
pub(crate) struct Wait {
    deadline: Deadline,
    spin: SpinPhase,
    exact: Option<ExactTimers>,
}

/// Whether a wait spins before its first sleep.
enum SpinPhase {
    NotStarted,
    /// It looks again and again.
    Spinning(Spinner),
    Over,
}

/// What a wait does next while its condition is false. It checks the condition again after that, unless
/// the wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Sleeps until it is woken, or for this long.
    Sleep(Option<Duration>),
    /// Lets the processor [pause](pause).
    Spin,
    End,
}

impl Deadline {
    /// The deadline of a wait without a timeout.
    pub const NEVER: Self = Self(None);

    /// The deadline of a check without a wait.
    pub fn now() -> Self {
        Self(Some(Instant::now()))
    }

    /// When a Level Zero timeout of `nanoseconds` that starts now expires. Never for `UINT64_MAX`, or more
    /// than the clock can count.
    pub(crate) fn after(nanoseconds: u64) -> Self {
        let finite = (nanoseconds != u64::MAX).then(|| Duration::from_nanos(nanoseconds));
        Self(finite.and_then(|timeout| Instant::now().checked_add(timeout)))
    }

    pub(crate) fn wait(self) -> Wait {
        Wait { deadline: self, spin: SpinPhase::NotStarted, exact: None }
    }

    fn next(self) -> Next {
        let Some(end) = self.0 else { return Next::Sleep(None) };
        match end.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Next::End,
            left if left <= SPIN_BEFORE_END => Next::Spin,
            left => Next::Sleep(Some(left.saturating_sub(SPIN_BEFORE_END))),
        }
    }
}

impl Wait {
    pub(crate) fn next(&mut self) -> Next {
        let next = self.deadline.next();
        if matches!(next, Next::Sleep(_)) && self.is_new() {
            return Next::Spin;
        }
        if let Next::Sleep(Some(_)) = next {
            self.exact.get_or_insert_with(ExactTimers::new);
        }
        next
    }

    /// Whether it is too early for the first sleep.
    fn is_new(&mut self) -> bool {
        self.spin = match mem::replace(&mut self.spin, SpinPhase::Over) {
            SpinPhase::NotStarted => Spinner::new().map_or(SpinPhase::Over, SpinPhase::Spinning),
            SpinPhase::Spinning(spinner) if spinner.is_early() => SpinPhase::Spinning(spinner),
            SpinPhase::Spinning(_) | SpinPhase::Over => SpinPhase::Over,
        };
        matches!(self.spin, SpinPhase::Spinning(_))
    }

    /// Sleeps until `changed` is notified, or lets the processor pause, without the lock. False once the wait is over.
    pub(crate) fn step<T>(&mut self, changed: &Condvar, state: &mut MutexGuard<'_, T>) -> bool {
        match self.next() {
            Next::Sleep(None) => changed.wait(state),
            Next::Sleep(Some(left)) => drop(changed.wait_for(state, left)),
            Next::Spin => MutexGuard::unlocked(state, pause),
            Next::End => return false,
        }
        true
    }
}

/// A thread that spins before its first sleep.
struct Spinner {
    end: Instant,
}

/// The number of threads that spin.
static SPINNERS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How many waits of this thread may still spin in vain. If negative, how many have yet to sleep at once.
    static CREDIT: Cell<i8> = const { Cell::new(MAX_CREDIT) };
}

impl Spinner {
    /// `None` if the wait is to sleep at once.
    fn new() -> Option<Self> {
        let credit = CREDIT.get();
        let most = processors();
        // With one processor, nothing happens while a thread spins.
        if credit < 0 || most == 1 {
            CREDIT.set(credit.saturating_add(1).min(MAX_CREDIT));
            return None;
        }
        let others = SPINNERS.fetch_add(1, Ordering::Relaxed);
        let spinner = Self { end: Instant::now() + SPIN_BEFORE_SLEEP };
        (others < most).then_some(spinner)
    }

    fn is_early(&self) -> bool {
        Instant::now() < self.end
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        SPINNERS.fetch_sub(1, Ordering::Relaxed);
        let credit = CREDIT.get();
        let changed = if self.is_early() { credit.saturating_add(1).min(MAX_CREDIT) } else { credit - 1 };
        CREDIT.set(if changed < 0 { -SLEEPS } else { changed });
    }
}

/// The number of processors that the process may use; 1 if the system does not report it.
fn processors() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        // SAFETY: an all-zero cpu_set_t is a valid value, and the call writes at most as many bytes as it has.
        unsafe {
            let mut set: libc::cpu_set_t = mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
            libc::CPU_COUNT(&set).max(1) as usize
        }
    })
}

/// Lets the processor pause for less than a microsecond.
pub(crate) fn pause() {
    for _ in 0..PAUSES {
        hint::spin_loop();
    }
}

/// While it lives, the timers of the calling thread end when they should.
struct ExactTimers {
    /// The slack that the thread had before, in nanoseconds.
    before: libc::c_int,
    /// The slack is that of the thread that calls.
    _of_one_thread: PhantomData<*const ()>,
}

impl ExactTimers {
    fn new() -> Self {
        // SAFETY: PR_GET_TIMERSLACK(2const) takes no pointer.
        let before = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
        set_slack(1);
        Self { before, _of_one_thread: PhantomData }
    }
}

impl Drop for ExactTimers {
    fn drop(&mut self) {
        // An error is negative. A real-time thread has slack 0, and setting 0 would set the default.
        if self.before > 0 {
            set_slack(self.before);
        }
    }
}

/// Sets the slack of the timers of the calling thread, in nanoseconds.
fn set_slack(nanoseconds: libc::c_int) {
    let nanoseconds = libc::c_ulong::from(nanoseconds.unsigned_abs());
    // SAFETY: PR_SET_TIMERSLACK(2const) takes a number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanoseconds) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slack() -> libc::c_int {
        // SAFETY: PR_GET_TIMERSLACK(2const) takes no pointer.
        unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }
    }

    #[test]
    fn a_wait_sleeps_until_shortly_before_its_end_and_then_spins() {
        assert_eq!(Deadline::NEVER.next(), Next::Sleep(None));
        assert_eq!(Deadline::after(u64::MAX).next(), Next::Sleep(None));
        assert_eq!(Deadline::now().next(), Next::End);
        let hour = Duration::from_hours(1);
        let Next::Sleep(Some(left)) = Deadline::after(hour.as_nanos() as u64).next() else { panic!("no sleep") };
        assert!(left + SPIN_BEFORE_END <= hour);
    }

    #[test]
    fn a_wait_spins_before_its_first_sleep_and_not_again() {
        let mut wait = Deadline::NEVER.wait();
        while wait.next() == Next::Spin {}
        assert_eq!([wait.next(), wait.next()], [Next::Sleep(None); 2]);
    }

    #[test]
    fn a_sleep_leaves_the_slack_of_the_thread_as_it_was() {
        set_slack(1234);
        let mut wait = Deadline::after(3_600_000_000_000).wait();
        assert_eq!(slack(), 1234);
        while wait.next() == Next::Spin {}
        assert_eq!(slack(), 1);
        drop(wait);
        assert_eq!(slack(), 1234);
    }
}
