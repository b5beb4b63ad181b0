//! Finds the default run: the newest one of `urscope run`.

use std::{env, fs, path::PathBuf};

use super::traces::HOME;

/// The directory of the traces: `$URSCOPE_DIR`, or the newest directory in `urscope-traces`.
pub(crate) fn newest() -> Option<PathBuf> {
    let named = env::var_os("URSCOPE_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folders = || fs::read_dir(HOME).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir());
    named.or_else(|| {
        folders().max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok()).map(|entry| entry.path())
    })
}
