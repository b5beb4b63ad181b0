//! Parses the text of `/proc/PID/stat`.
//!
//! The name of a process may contain spaces and parentheses, so fields are counted from the last `)`
//! (`proc_pid_stat(5)`). This is the only parser of the file in the shim, the analyzer and the tests.

/// The fields that urscope needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcStat<'a> {
    /// Field 2: the name, at most 15 bytes, without the parentheses around it.
    pub name: &'a str,
    /// Field 3: the state, such as `R` (running), `S` (sleeping), `T` (stopped), `Z` (zombie) or `X` (dead).
    pub state: char,
    /// Field 4: the parent process; 0 if that is in another pid namespace.
    pub parent: u32,
    /// Field 22: when the process started, in clock ticks since boot. Pid and start identify a process, because the
    /// kernel reuses pids.
    pub start: u64,
    /// Field 28: where its stack begins, which is another place when it has become another program, or the same one
    /// again; 0 if this process may not inspect it.
    pub stack: Option<u64>,
    /// Field 52: how it ended, as `wait` returns it; 0 while it runs, or if this process may not inspect it.
    pub exit_code: Option<i32>,
}

impl<'a> ProcStat<'a> {
    /// Parses the contents of the file; `None` if they have another form.
    pub fn parse(stat: &'a str) -> Option<Self> {
        let (head, fields) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        // Fields 5 to 21 are skipped.
        let start = fields.nth(17)?.parse().ok()?;
        // Fields 23 to 27, and 29 to 51 are skipped.
        let stack = fields.nth(5).and_then(|stack| stack.parse().ok());
        let exit_code = fields.nth(23).and_then(|code| code.parse().ok());
        Some(Self { name, state, parent, start, stack, exit_code })
    }

    /// Whether the process has ended.
    pub const fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7 (a) b (c) S 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 9 9";

    #[test]
    fn a_name_may_hold_anything() {
        let stat = ProcStat::parse(STAT).unwrap();
        assert_eq!(
            stat,
            ProcStat { name: "a) b (c", state: 'S', parent: 3, start: 12345, stack: None, exit_code: None }
        );
        assert!(!stat.has_ended());
        assert!(ProcStat::parse(&STAT.replace(" S ", " Z ")).unwrap().has_ended());
    }

    #[test]
    fn text_of_another_form_is_refused() {
        for stat in ["", "42", "42 (a)", "42 (a) S 1 2 3", &STAT.replace("12345", "x")] {
            assert_eq!(ProcStat::parse(stat), None, "{stat}");
        }
    }

    #[test]
    fn the_kernel_writes_this_form() {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let stat = ProcStat::parse(&stat).unwrap();
        assert_eq!(stat.parent, std::os::unix::process::parent_id());
        assert!(stat.start > 0 && !stat.has_ended() && stat.exit_code == Some(0));
        assert!(stat.stack.is_some_and(|stack| stack > 0), "{stat:?}");
    }
}
