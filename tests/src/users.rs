//! Scripts in which two users of one machine meet: the one who runs urscope, and another one.
//!
//! They need root, or else a user namespace with the numbers of `/etc/subuid` (`newuidmap(1)`).

use std::fs::{self, Permissions};
use std::{os::unix::fs::PermissionsExt, path::Path, time::Duration};

use tempfile::TempDir;

use crate::artefacts;
use crate::run::{Ended, Session};

/// The most time that a script may take.
const LIMIT: Duration = Duration::from_mins(2);

/// What each script begins with. `victim` and `attacker` run a command as one of the two users for a minute at most,
/// without any rights of root; both are in one group. In `$VICTIM_FOLDER` only the victim may write, in `$SHARED`
/// everyone.
const PRELUDE: &str = r#"
set -u
as() { timeout -k 1 60 setpriv --reuid="$1" --regid="$1" --groups=3000 --inh-caps=-all --bounding-set=-all -- "${@:2}"; }
ATTACKER=2001
VICTIM=2002
# In a folder that others may not enter, the victim is the owner of it.
as $VICTIM test -x "$URSCOPE" || VICTIM=0
victim() { as $VICTIM "$@"; }
attacker() { as $ATTACKER "$@"; }
fail() { echo "$*" >&2; exit 99; }
SHARED=$PWD/shared VICTIM_FOLDER=$PWD/victim
mkdir -m 1777 "$SHARED"; chmod 1777 "$SHARED"
mkdir -m 755 "$VICTIM_FOLDER"; chown $VICTIM "$VICTIM_FOLDER"
"#;

/// Runs a script of bash after the [`PRELUDE`], in a folder of its own that all users may read. `$URSCOPE` and
/// `$LIBRARY` are the command and the library for `LD_PRELOAD`.
pub fn script(text: &str, variables: &[(&str, &Path)]) -> Ended {
    let folder = TempDir::with_prefix("urscope-users-").expect("no temporary folder");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("the folder is ours");
    let whole = folder.path().join("script");
    fs::write(&whole, format!("{PRELUDE}{text}")).expect("the folder can be written");
    let start = "[[ $EUID == 0 ]] && exec bash script; exec unshare --user --map-root-user --map-auto bash script";
    let mut session = Session::new(start, folder.path(), LIMIT)
        .env("URSCOPE", artefacts::command())
        .env("LIBRARY", artefacts::preloaded());
    for (name, value) in variables {
        session = session.env(name, value.as_os_str());
    }
    session.run()
}
