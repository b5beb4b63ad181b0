//! Tests whether one process may take a descriptor from another one, and finds the cause if it may not.
//!
//! Three attempts distinguish the causes. A process may always take from itself, unless a system-call filter forbids
//! it. It may take from its child if Yama allows it for descendants. Siblings are related as producers and consumers
//! are.

use std::io::{BufRead as _, BufReader};
use std::process::{self, Child, Command, Stdio};
use std::{env, fs, os::fd::AsRawFd as _};

use rustix::io::Errno;

use super::line::Line;
use super::probe::{self, Outcome};

const CHECK: &str = "descriptors";

/// The bit of CAP_SYS_PTRACE.
const CAP_SYS_PTRACE: u32 = 19;

/// The results of the attempts, and what the system reports.
#[derive(Clone, Debug)]
pub(crate) struct ExchangeFacts {
    own: Outcome,
    child: Outcome,
    /// The result of one child taking from another; an error message if this could not be tested.
    sibling: Result<Outcome, String>,
    circumstances: Circumstances,
}

/// What the permission depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Circumstances {
    /// Yama's `ptrace_scope`; `None` without Yama.
    yama: Option<u8>,
    filter: bool,
    /// Whether this process has CAP_SYS_PTRACE, which overrides most restrictions.
    may_ptrace: bool,
}

pub(crate) fn gather() -> ExchangeFacts {
    let own = match probe::offered() {
        Ok(file) => probe::take(process::id() as i32, file.as_raw_fd()),
        Err(error) => Err((probe::READ, Errno::from_io_error(&error).unwrap_or(Errno::IO))),
    };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    let circumstances = circumstances(&status, yama.as_deref());
    match offerer() {
        Ok((mut offerer, pid, descriptor)) => {
            let child = probe::take(pid, descriptor);
            let sibling = sibling(pid, descriptor);
            // The process exits at the end of its input.
            drop(offerer.stdin.take());
            drop(offerer.wait());
            ExchangeFacts { own, child, sibling, circumstances }
        }
        Err(why) => ExchangeFacts { own, child: own, sibling: Err(why), circumstances },
    }
}

fn offerer() -> Result<(Child, i32, i32), String> {
    let mut child = probe_command()?
        .arg("offer")
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("a second process cannot be started: {error}"))?;
    let line = first_line(&mut child);
    let offer = line.split_once(' ').and_then(|(pid, fd)| Some((pid.parse().ok()?, fd.trim().parse().ok()?)));
    if let Some((pid, descriptor)) = offer {
        return Ok((child, pid, descriptor));
    }
    drop(child.stdin.take());
    drop(child.wait());
    Err(format!("the second process did not offer a descriptor, but printed {line:?}"))
}

fn sibling(pid: i32, descriptor: i32) -> Result<Outcome, String> {
    let mut child = probe_command()?
        .args(["take", &pid.to_string(), &descriptor.to_string()])
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| format!("a third process cannot be started: {error}"))?;
    let line = first_line(&mut child);
    drop(child.wait());
    probe::decode(&line).ok_or_else(|| format!("the output of the third process cannot be parsed: {line:?}"))
}

fn probe_command() -> Result<Command, String> {
    let ourselves = env::current_exe().map_err(|error| format!("urscope cannot find its own executable: {error}"))?;
    let mut command = Command::new(ourselves);
    command.arg("doctor-probe").stdout(Stdio::piped());
    Ok(command)
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        // The caller reports an empty line.
        drop(BufReader::new(out).read_line(&mut line));
    }
    line
}

fn circumstances(status: &str, yama: Option<&str>) -> Circumstances {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let capabilities = field("CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
    Circumstances {
        yama: yama.and_then(|scope| scope.trim().parse().ok()),
        filter: field("Seccomp") == Some("2"),
        may_ptrace: capabilities >> CAP_SYS_PTRACE & 1 == 1,
    }
}

pub(crate) fn line(facts: &ExchangeFacts) -> Line {
    match &facts.sibling {
        Err(why) => Line::problem(CHECK, format!("pidfd_getfd could not be tested: {why}"), "try again from a shell"),
        Ok(Ok(())) => {
            let Circumstances { yama, may_ptrace, .. } = facts.circumstances;
            let found = "pidfd_getfd between two processes of one user works";
            match yama {
                Some(scope @ 1..) if may_ptrace => Line::warning(
                    CHECK,
                    format!("{found}, because you have CAP_SYS_PTRACE (Yama's ptrace_scope is {scope})"),
                    "a user without that capability will be refused: sysctl kernel.yama.ptrace_scope=0",
                ),
                _ => Line::ok(CHECK, found),
            }
        }
        Ok(Err((step, errno))) => {
            let (cause, advice) = explain(facts, step, *errno);
            Line::problem(CHECK, format!("{step} between two processes was refused ({errno}): {cause}"), advice)
        }
    }
}

fn explain(facts: &ExchangeFacts, step: &str, errno: Errno) -> (String, &'static str) {
    const YAMA: &str = "sysctl kernel.yama.ptrace_scope=0 as root, give the consumer CAP_SYS_PTRACE, or let the producer call \
                        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY)";
    const CONTAINER: &str =
        "start the container with --cap-add=SYS_PTRACE, or with a seccomp profile that allows pidfd_getfd";
    let Circumstances { yama, filter, may_ptrace } = facts.circumstances;
    match errno {
        Errno::NOSYS if filter => {
            ("a system-call filter hides the call, or the kernel is older than 5.6".into(), CONTAINER)
        }
        Errno::NOSYS => ("the kernel does not have this call".into(), "use Linux 5.6 or newer"),
        Errno::PERM | Errno::ACCESS if facts.own.is_err() && filter => (
            "a system-call filter forbids the call, even within one process, as container engines do".into(),
            CONTAINER,
        ),
        Errno::PERM | Errno::ACCESS => match yama {
            Some(3..) => (
                "Yama's ptrace_scope is 3: no process may take descriptors".into(),
                "boot with another kernel.yama.ptrace_scope; 3 cannot be changed while the system runs",
            ),
            Some(scope @ 1..) if !may_ptrace => {
                let rule = match (scope, facts.child.is_ok()) {
                    (1, true) => "only a parent may take from its descendants, which works here",
                    (1, false) => "only a parent may take from its descendants",
                    _ => "only CAP_SYS_PTRACE may",
                };
                (format!("Yama's ptrace_scope is {scope}: {rule}"), YAMA)
            }
            _ if !may_ptrace => (
                "a security module (SELinux, AppArmor) forbids it, or the producer is not dumpable".into(),
                "search for the refusal in the audit log; on SELinux: setsebool deny_ptrace off",
            ),
            _ => (
                "a security module (SELinux, AppArmor) forbids it in spite of CAP_SYS_PTRACE".into(),
                "search for the refusal in the audit log",
            ),
        },
        Errno::SRCH => (
            "the processes are in different pid namespaces".into(),
            "run both in one pid namespace (docker run --pid=container:…)",
        ),
        Errno::MFILE | Errno::NFILE => ("there are too many open files".into(), "raise the limit with ulimit -n"),
        _ if step == probe::READ => {
            ("the descriptor was received, but could not be read".into(), "try again from a shell")
        }
        _ => ("urscope does not know the cause".into(), "see the manual page pidfd_getfd(2)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::line::State;

    #[test]
    fn the_cause_of_a_refusal_is_found() {
        const REFUSED: Outcome = Err((probe::GET, Errno::PERM));
        const ABSENT: Outcome = Err((probe::OPEN, Errno::NOSYS));
        let by = |yama, filter| Circumstances { yama, filter, may_ptrace: false };
        for (own, child, sibling, circumstances, found, advice) in [
            (Ok(()), Ok(()), REFUSED, by(Some(1), true), "Yama's ptrace_scope is 1", "PR_SET_PTRACER"),
            (REFUSED, REFUSED, REFUSED, by(Some(1), true), "system-call filter", "--cap-add=SYS_PTRACE"),
            (Ok(()), REFUSED, REFUSED, by(Some(2), false), "only CAP_SYS_PTRACE may", ""),
            (Ok(()), REFUSED, REFUSED, by(Some(3), false), "no process may", ""),
            (Ok(()), REFUSED, REFUSED, by(Some(0), false), "security module", ""),
            (ABSENT, ABSENT, ABSENT, by(None, false), "", "5.6"),
            (ABSENT, ABSENT, ABSENT, by(None, true), "", "container"),
        ] {
            let line = line(&ExchangeFacts { own, child, sibling: Ok(sibling), circumstances });
            assert_eq!(line.state, State::Problem, "{line:?}");
            assert!(line.found.contains(found) && line.advice.as_ref().unwrap().contains(advice), "{line:?}");
        }
    }

    #[test]
    fn a_dependence_on_the_capability_is_a_warning() {
        let circumstances = Circumstances { yama: Some(1), may_ptrace: true, filter: false };
        let facts = ExchangeFacts { own: Ok(()), child: Ok(()), sibling: Ok(Ok(())), circumstances };
        assert_eq!(line(&facts).state, State::Warning);
        assert_eq!(line(&ExchangeFacts { circumstances: Circumstances::default(), ..facts }).state, State::Ok);
    }

    #[test]
    fn the_status_of_a_process_is_parsed() {
        let status = "CapPrm:\t0\nCapEff:\t0000000000080000\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        let read = circumstances(status, Some("1\n"));
        assert_eq!(read, Circumstances { yama: Some(1), filter: true, may_ptrace: true });
        assert_eq!(circumstances("", None), Circumstances::default());
    }
}
