//! What we say on stderr: one line at a time, past all buffers of the application.

/// Writes `urscope: TEXT` as one line. A stderr that cannot be written to is not our problem.
pub fn say(text: &str) {
    let line = format!("urscope: {text}\n");
    // SAFETY: the buffer is as long as said; write(2) reads it and nothing else.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
