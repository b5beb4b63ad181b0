//! Words of a command line that a person copies into a shell.

use std::{borrow::Cow, path::Path};

/// A path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> Cow<'_, str> {
    let text = path.to_string_lossy();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+=:,@%".contains(letter);
    if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")).into() }
}
