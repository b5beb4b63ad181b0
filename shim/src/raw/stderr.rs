//! Messages on stderr: one line at a time, bypassing all buffers of the program. Must never fail.

/// Writes `urscope: TEXT` as one line. Errors are ignored.
pub fn say(text: &str) {
    let line = format!("urscope: {text}\n");
    // SAFETY: the buffer is as long as said; write(2) reads it and nothing else.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
