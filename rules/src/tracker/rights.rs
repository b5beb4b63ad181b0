//! The permissions of a process in the kernel: mainly whether it may fetch a descriptor, by which all
//! handle data of Level Zero is opened (`pidfd_getfd(2)`, "ptrace access mode").

/// The permissions that the process recorded. Those that are not recorded count as granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// The effective user.
    pub uid: Option<u32>,
    /// The inode of the pid namespace.
    pub pid_namespace: Option<u64>,
    /// `/proc/sys/kernel/yama/ptrace_scope`, 0 to 3.
    pub ptrace_scope: Option<u32>,
    /// The mode of seccomp (`/proc/PID/status`): 2 is a filter.
    pub seccomp: Option<u32>,
    /// Whether others of the same user may look into it (`PR_GET_DUMPABLE`).
    pub dumpable: Option<bool>,
    /// Whether it has `CAP_SYS_PTRACE`.
    pub traces_any: Option<bool>,
    /// How many descriptors it may have open (`RLIMIT_NOFILE`).
    pub descriptors: Option<u64>,
}

/// A reason why a process cannot fetch another one's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// The two have process numbers of their own.
    PidNamespaces,
    /// Their users differ: the producer's and the consumer's.
    Users(u32, u32),
    /// The producer is not dumpable.
    Undumpable,
    /// Yama forbids it, in this scope.
    Yama(u32),
    /// The consumer's system calls are filtered.
    Seccomp,
}

impl Barrier {
    /// Whether the open cannot have succeeded: in scope 1 the producer may have allowed it, and a filter
    /// may let it pass.
    pub(crate) const fn is_certain(self) -> bool {
        !matches!(self, Self::Yama(1) | Self::Seccomp)
    }
}

impl Rights {
    /// Whether two processes are known to have process numbers of different namespaces.
    pub(crate) fn is_elsewhere(&self, other: &Self) -> bool {
        self.pid_namespace.zip(other.pid_namespace).is_some_and(|(one, other)| one != other)
    }

    /// The reason why a process with these rights cannot fetch a descriptor of one with those of `producer`.
    pub(crate) fn barrier(&self, producer: &Self) -> Option<Barrier> {
        if self.is_elsewhere(producer) {
            return Some(Barrier::PidNamespaces);
        }
        let scope = self.ptrace_scope.unwrap_or_default();
        if scope >= 3 {
            return Some(Barrier::Yama(scope));
        }
        // Unknown values prove nothing.
        if self.traces_any != Some(false) {
            return None;
        }
        match (producer.uid, self.uid) {
            (Some(producer), Some(consumer)) if producer != consumer => {
                return Some(Barrier::Users(producer, consumer));
            }
            _ => {}
        }
        if producer.dumpable == Some(false) {
            return Some(Barrier::Undumpable);
        }
        match (scope, self.seccomp) {
            (1.., _) => Some(Barrier::Yama(scope)),
            (0, Some(2)) => Some(Barrier::Seccomp),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Rights = Rights {
        uid: Some(1000),
        pid_namespace: Some(7),
        ptrace_scope: Some(0),
        seccomp: Some(0),
        dumpable: Some(true),
        traces_any: Some(false),
        descriptors: None,
    };

    #[test]
    fn what_is_not_known_or_not_in_the_way_is_no_barrier() {
        for (consumer, producer) in [(PLAIN, PLAIN), (Rights::default(), PLAIN), (PLAIN, Rights::default())] {
            assert_eq!(consumer.barrier(&producer), None);
        }
    }

    #[test]
    fn the_right_to_trace_any_process_opens_all_but_namespaces_and_the_last_scope() {
        let root = Rights { traces_any: Some(true), uid: Some(0), ptrace_scope: Some(2), seccomp: Some(2), ..PLAIN };
        let hidden = Rights { dumpable: Some(false), ..PLAIN };
        assert_eq!(root.barrier(&hidden), None);
        assert_eq!(root.barrier(&Rights { pid_namespace: Some(8), ..PLAIN }), Some(Barrier::PidNamespaces));
        assert_eq!(Rights { ptrace_scope: Some(3), ..root }.barrier(&PLAIN), Some(Barrier::Yama(3)));
    }

    #[test]
    fn each_barrier_is_told_from_the_others() {
        let found = |consumer: Rights, producer: Rights| consumer.barrier(&producer);
        assert_eq!(found(PLAIN, Rights { uid: Some(7), ..PLAIN }), Some(Barrier::Users(7, 1000)));
        assert_eq!(found(PLAIN, Rights { dumpable: Some(false), ..PLAIN }), Some(Barrier::Undumpable));
        assert_eq!(found(Rights { seccomp: Some(2), ..PLAIN }, PLAIN), Some(Barrier::Seccomp));
        for scope in [1, 2] {
            let barrier = found(Rights { ptrace_scope: Some(scope), ..PLAIN }, PLAIN).unwrap();
            assert_eq!((barrier, barrier.is_certain()), (Barrier::Yama(scope), scope == 2));
        }
    }
}
