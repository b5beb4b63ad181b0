//! Commands in command lists, which are executed later: perhaps after the memory has ended that they access.
//!
//! [`commands`](super::commands) asks for them when lists are executed. Threads change them without a lock.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use urscope_schema::{call::Values, operation};

use super::ranges::{ENDED_RANGES, SHARED_RANGES};

/// An address that a command in a list accesses.
struct Entry {
    /// The list; 0 where there is none, or the entry is being changed.
    list: AtomicUsize,
    address: AtomicU64,
    /// The number of the call that appended the command, and in the lowest bit whether it writes there.
    appended: AtomicU64,
}

/// An address that a command in a list accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedAccess {
    pub(crate) address: u64,
    /// Whether the command writes there.
    pub(crate) writes: bool,
    /// The number of the call that appended it.
    pub(crate) appended: u64,
}

impl ListedAccess {
    /// Adds it to the arguments of the call that executes it.
    pub(crate) fn enter(self, values: &mut Values) {
        let (address, flag) = if self.writes {
            (&mut values.pointer, operation::ACCESSED)
        } else {
            (&mut values.source, operation::SOURCE)
        };
        *address = Some(self.address);
        (values.noticed, values.appended) = (Some(flag), Some(self.appended));
    }
}

/// The latest ones. Older ones are forgotten.
static ENTRIES: [Entry; 256] =
    [const { Entry { list: AtomicUsize::new(0), address: AtomicU64::new(0), appended: AtomicU64::new(0) } }; 256];

/// How many were added.
static ADDED: AtomicUsize = AtomicUsize::new(0);

/// Notes the addresses that a command of a list writes and reads, which the call with this number appends: those that
/// may be in shared memory which has not ended.
#[inline(never)]
pub(crate) fn note(list: usize, call: u64, [written, read]: [Option<u64>; 2]) {
    for (address, writes) in [(written, true), (read, false)] {
        if let Some(address) = address
            && SHARED_RANGES.may_have(address)
            && ENDED_RANGES.around(address).is_none()
        {
            add(list, ListedAccess { address, writes, appended: call });
        }
    }
}

fn add(list: usize, access: ListedAccess) {
    let place = ADDED.fetch_add(1, Ordering::Relaxed) % ENTRIES.len();
    let Some(entry) = ENTRIES.get(place) else { return };
    entry.list.store(0, Ordering::Relaxed);
    entry.address.store(access.address, Ordering::Release);
    entry.appended.store(access.appended << 1 | u64::from(access.writes), Ordering::Release);
    entry.list.store(list, Ordering::Release);
}

/// Forgets the commands of a list that is new, or was reset.
pub(crate) fn clear(list: usize) {
    forget(|entry| entry.list.load(Ordering::Relaxed) == list);
}

/// Forgets a command that was not appended.
#[cold]
pub(crate) fn refused(call: u64) {
    forget(|entry| entry.appended.load(Ordering::Relaxed) >> 1 == call);
}

fn forget(of: impl Fn(&Entry) -> bool) {
    if ADDED.load(Ordering::Relaxed) > 0 {
        ENTRIES.iter().filter(|entry| of(entry)).for_each(|entry| entry.list.store(0, Ordering::Relaxed));
    }
}

/// The first access of commands in these lists to an address that is `wanted`.
pub(crate) fn find(
    lists: &(impl Iterator<Item = usize> + Clone),
    wanted: impl Fn(u64) -> bool,
) -> Option<ListedAccess> {
    ENTRIES.iter().find_map(|entry| {
        let list = entry.list.load(Ordering::Acquire);
        let address = entry.address.load(Ordering::Acquire);
        if list == 0 || !wanted(address) || !lists.clone().any(|executed| executed == list) {
            return None;
        }
        let appended = entry.appended.load(Ordering::Acquire);
        // Another thread may have replaced it meanwhile.
        let is_same = entry.list.load(Ordering::Acquire) == list && entry.address.load(Ordering::Acquire) == address;
        is_same.then_some(ListedAccess { address, writes: appended & 1 != 0, appended: appended >> 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because a process has one such state.
    #[test]
    fn the_latest_commands_of_a_list_are_known_until_it_is_cleared() {
        let access = |address, appended| ListedAccess { address, writes: address % 2 == 0, appended };
        let at = |lists: &'static [usize], address| find(&lists.iter().copied(), |it| it == address);
        add(0x10, access(100, 1));
        add(0x20, access(101, 2));
        assert_eq!(at(&[0x10], 100), Some(access(100, 1)));
        assert_eq!((at(&[0x10], 101), at(&[0x30, 0x20], 101)), (None, Some(access(101, 2))));
        refused(2);
        assert_eq!(at(&[0x20], 101), None);
        clear(0x10);
        assert_eq!(at(&[0x10], 100), None);
        add(0x10, access(102, 3));
        (0..ENTRIES.len() as u64).for_each(|more| add(0x40, access(1000 + more, 4)));
        assert_eq!(at(&[0x10], 102), None, "forgotten");
        assert_eq!(at(&[0x40], 1000), Some(access(1000, 4)));
    }
}
