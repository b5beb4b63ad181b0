//! Messages on stderr: one line at a time, bypassing all buffers of the program. Must never fail.

/// Writes `urscope: TEXT` as one line. Errors are ignored.
pub fn say(text: &str) {
    let line = format!("urscope: {text}\n");
    // SAFETY: the length is that of the buffer; write(2) only reads it.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
