//! The names of signals, as `kill -l` writes them.

/// The names, in the order of their numbers on x86-64, from 1 on.
const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// The name of a signal, such as `SIGSEGV`; `signal 34` for one without a name.
pub fn name(number: u32) -> String {
    let name = (number as usize).checked_sub(1).and_then(|index| NAMES.get(index));
    name.map_or_else(|| format!("signal {number}"), |name| (*name).to_owned())
}

/// What a signal usually means, where its name does not tell that.
pub fn meaning(number: u32) -> Option<&'static str> {
    let of_instruction = "SIGILL usually means that the program, or a library that it uses, was compiled for processors with instructions that \
                          this one does not have";
    (name(number) == "SIGILL").then_some(of_instruction)
}

/// The name of the signal that a person writes as `SIGSEGV`, `SEGV`, `segv` or `11`. The error says what is expected.
pub fn parse(text: &str) -> Result<String, String> {
    let upper = text.to_uppercase();
    let known = NAMES.iter().find(|name| **name == upper || name.strip_prefix("SIG") == Some(&upper));
    let number = || text.parse().ok().filter(|number| (1..=64).contains(number)).map(name);
    known
        .map(|name| (*name).to_owned())
        .or_else(number)
        .ok_or_else(|| "expected the name of a signal, such as KILL, or its number".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_named_and_parsed() {
        assert_eq!(
            (name(11), name(31), name(34), name(0)),
            ("SIGSEGV".into(), "SIGSYS".into(), "signal 34".into(), "signal 0".into())
        );
        for text in ["SIGKILL", "kill", "KILL", "9"] {
            assert_eq!(parse(text), Ok("SIGKILL".to_owned()), "{text}");
        }
        assert_eq!(parse("34"), Ok("signal 34".to_owned()));
        assert!(parse("0").is_err() && parse("65").is_err() && parse("KIL").is_err());
    }
}
