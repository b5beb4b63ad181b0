//! Runs a program one instruction at a time between its marks, and counts the instructions by the file that they are
//! in.
//!
//! A mark is an `int3` instruction. Both marks of a section are executed at the same address. The count needs no
//! counter of the processor, and is the same on each processor on which the program executes the same code. Only the
//! thread that executes the marks is stepped.

use std::{collections::BTreeMap, fs, io, ops::Range, os::unix::process::CommandExt as _, process::Command, ptr};

/// The instructions of a section, by the name of the file that holds them. Code outside of files has the name that the
/// kernel gives it, as in `[vdso]`, or an empty one.
pub type Section = BTreeMap<String, u64>;

/// The byte of an `int3` instruction.
const INT3: u8 = 0xcc;

/// Runs a command to its end and counts each section between two marks. Panics if the program is not started or fails.
///
/// A repeated string instruction counts once, however often it repeats.
#[expect(clippy::zombie_processes, reason = "`Stepped::wait` waits for it, by its number")]
pub fn sections(mut command: Command) -> Vec<Section> {
    // SAFETY: between fork and exec, this makes one system call.
    unsafe { command.pre_exec(|| ptrace(libc::PTRACE_TRACEME, 0, 0, 0).map(drop)) };
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let program = Stepped { pid: child.id() as libc::pid_t };
    assert_eq!(program.wait(), Event::Stopped(libc::SIGTRAP), "{command:?} stops when it has become the program");
    program.ask(libc::PTRACE_SETOPTIONS, libc::PTRACE_O_EXITKILL as usize);

    let mut sections = Vec::new();
    let mut signal = 0;
    loop {
        program.ask(libc::PTRACE_CONT, signal as usize);
        signal = match program.wait() {
            Event::Ended(0) => return sections,
            Event::Ended(status) => panic!("{command:?} ended with the status {status:#x}"),
            Event::Stopped(libc::SIGTRAP) if program.is_behind_mark() => {
                sections.push(program.section());
                0
            }
            Event::Stopped(signal) => signal,
        };
    }
}

/// A process that is traced by this thread.
struct Stepped {
    pid: libc::pid_t,
}

/// What happened to the process.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    /// A signal is about to be delivered, or a step is done.
    Stopped(i32),
    /// It has ended, with the status that `wait` gives.
    Ended(i32),
}

impl Stepped {
    /// Counts from the mark behind which the process stands up to and including the next time at this mark.
    fn section(&self) -> Section {
        let files = self.files();
        let mark = self.position() - 1;
        let mut section = Section::new();
        let mut at = self.position();
        let mut file = 0;
        let mut signal = 0;
        while at != mark {
            self.ask(libc::PTRACE_SINGLESTEP, signal as usize);
            signal = match self.wait() {
                Event::Stopped(libc::SIGTRAP) => 0,
                Event::Stopped(signal) => signal,
                Event::Ended(status) => panic!("the program ended between two marks, with the status {status:#x}"),
            };
            let next = self.position();
            // A string instruction stays at its place until it has repeated often enough.
            if next == at {
                continue;
            }
            if !files.get(file).is_some_and(|(range, _)| range.contains(&at)) {
                file = files.iter().position(|(range, _)| range.contains(&at)).unwrap_or(files.len());
            }
            let name = files.get(file).map_or("", |(_, name)| name);
            match section.get_mut(name) {
                Some(count) => *count += 1,
                None => drop(section.insert(name.to_owned(), 1)),
            }
            at = next;
        }
        self.ask(libc::PTRACE_SINGLESTEP, 0);
        assert_eq!(self.wait(), Event::Stopped(libc::SIGTRAP), "a mark stops the program");
        section
    }

    /// The addresses of code, and the names of the files that it is from.
    fn files(&self) -> Vec<(Range<u64>, String)> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid)).expect("the maps of a child can be read");
        maps.lines().filter_map(mapped_code).collect()
    }

    /// The address of the next instruction.
    fn position(&self) -> u64 {
        self.ask(libc::PTRACE_PEEKUSER, 0) as u64
    }

    fn is_behind_mark(&self) -> bool {
        // The word may lie across the end of the mapping; then this is no mark.
        let word = ptrace(libc::PTRACE_PEEKTEXT, self.pid, self.position() as usize - 1, 0);
        word.is_ok_and(|word| word as u8 == INT3)
    }

    fn wait(&self) -> Event {
        let mut status = 0;
        // SAFETY: it fills the variable.
        let waited = unsafe { libc::waitpid(self.pid, &raw mut status, libc::__WALL) };
        assert_eq!(waited, self.pid, "a traced child can be waited for: {}", io::Error::last_os_error());
        if libc::WIFSTOPPED(status) { Event::Stopped(libc::WSTOPSIG(status)) } else { Event::Ended(status) }
    }

    fn ask(&self, request: libc::c_uint, data: usize) -> i64 {
        let address = if request == libc::PTRACE_PEEKUSER { libc::RIP as usize * size_of::<usize>() } else { 0 };
        ptrace(request, self.pid, address, data).expect("a stopped process answers its tracer")
    }
}

/// ptrace(2). A request that reads returns the word.
fn ptrace(request: libc::c_uint, pid: libc::pid_t, address: usize, data: usize) -> io::Result<i64> {
    // The C library returns the word that was read, which can be -1. The kernel stores it where `data` points to.
    let mut word = 0_i64;
    let reads = matches!(request, libc::PTRACE_PEEKUSER | libc::PTRACE_PEEKTEXT);
    let data = if reads { (&raw mut word).expose_provenance() } else { data };
    // SAFETY: the requests in this file change the memory of no process but a stopped child, and write at most to
    // `word`.
    let result = unsafe {
        libc::syscall(libc::SYS_ptrace, request as libc::c_long, pid as libc::c_long, address, data, ptr::null::<u8>())
    };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(word) }
}

/// The range and the file name of a line of `/proc/PID/maps`, if it is executable.
fn mapped_code(line: &str) -> Option<(Range<u64>, String)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
    fields.next()?.contains('x').then_some(())?;
    let path = fields.nth(3).unwrap_or_default();
    Some((range, path.rsplit('/').next().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_line_of_the_maps_has_a_range_and_a_file() {
        let line = "7f0000001000-7f0000003000 r-xp 00001000 fe:00 42   /usr/lib/libc.so.6";
        assert_eq!(mapped_code(line), Some((0x7f00_0000_1000..0x7f00_0000_3000, "libc.so.6".into())));
        assert_eq!(mapped_code("1000-2000 r-xp 00000000 00:00 0"), Some((0x1000..0x2000, String::new())));
        assert_eq!(mapped_code("1000-2000 rw-p 00001000 fe:00 42 /usr/lib/libc.so.6"), None);
    }

    /// A program without libraries, of these instructions; it ends with success.
    fn program(name: &str, body: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source = folder.path().join("source.s");
        let program = folder.path().join(name);
        let text = format!(
            ".bss\nspace: .skip 64\n.text\n.globl _start\n_start:\n{body}\nmov $60, %eax\nxor %edi, %edi\nsyscall\n"
        );
        fs::write(&source, text).expect("a file in a temporary folder");
        let built = Command::new("gcc").args(["-nostdlib", "-static", "-o"]).arg(&program).arg(&source).status();
        assert!(built.expect("gcc starts").success());
        (folder, program)
    }

    #[test]
    fn instructions_between_marks_are_counted_exactly() {
        // A loop of five turns with two instructions, a string instruction that repeats, the call of the mark and the
        // return.
        let body = "call mark\nmov $5, %ecx\n1: dec %ecx\njnz 1b\nlea space(%rip), %rdi\nmov $64, %ecx\nrep stosb\ncall mark\n\
                    nop\ncall mark\nnop\ncall mark\njmp 2f\nmark: int3\nret\n2:";
        let (_folder, program) = program("marked", body);
        let counted = |count| Section::from([("marked".to_owned(), count)]);
        assert_eq!(sections(Command::new(program)), [counted(1 + 1 + 10 + 3 + 1), counted(1 + 1 + 1)]);
    }

    #[test]
    #[should_panic(expected = "ended with the status")]
    fn a_program_that_fails_is_no_measurement() {
        let (_folder, program) = program("failing", "mov $60, %eax\nmov $3, %edi\nsyscall");
        sections(Command::new(program));
    }
}
