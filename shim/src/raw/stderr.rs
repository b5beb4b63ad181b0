//! Messages on stderr: one line at a time, bypassing all buffers of the program. Must never fail.

use std::{fmt::Write as _, os::fd::BorrowedFd};

use super::errno::Errno;

/// Writes `urscope: TEXT` as one line. Errors are ignored.
///
/// The text may contain names from the environment and from files: control characters are escaped.
pub fn say(text: &str) {
    let _errno = Errno::now();
    let line = line(text);
    if !has_room(line.len() as u64) {
        return;
    }
    // SAFETY: the length is that of the buffer; write(2) only reads it.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

/// Whether `length` bytes can be written to stderr. If it is a file, writing above the limit of file size raises
/// SIGXFSZ.
fn has_room(length: u64) -> bool {
    let limit = super::processes::process::file_size_limit();
    // SAFETY: if stderr is not open, the calls below fail. Nothing here closes it.
    let stderr = unsafe { BorrowedFd::borrow_raw(libc::STDERR_FILENO) };
    if limit == libc::RLIM_INFINITY {
        return true;
    }
    let Ok(status) = super::files::plain_file::status_of(&stderr) else { return true };
    // SAFETY: lseek(2) touches no memory.
    let at = unsafe { libc::lseek(libc::STDERR_FILENO, 0, libc::SEEK_CUR) };
    // A file in append mode is written at its end.
    let at = (at.max(0) as u64).max(status.st_size as u64);
    status.st_mode & libc::S_IFMT != libc::S_IFREG || at + length <= limit
}

fn line(text: &str) -> String {
    let mut line = String::with_capacity(text.len() + 16);
    line.push_str("urscope: ");
    for c in text.chars() {
        if is_unprintable(c) {
            let _ = write!(line, "{}", c.escape_unicode());
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    line
}

/// Whether a character controls a terminal, ends a line, or changes the direction of text (UAX #9).
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_and_controls_no_terminal() {
        assert_eq!(line("a\x1b[2J\nb\u{202e}é"), "urscope: a\\u{1b}[2J\\u{a}b\\u{202e}é\n");
    }
}
