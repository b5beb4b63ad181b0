//! The page of a run in a browser: the server of the page, its address, and the browser that is opened on it.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::{
    arguments::WindowArguments,
    run::Program,
    view::{
        Settings, Subject, View, ViewError,
        perfetto::{self, Copy, NoCopy},
    },
};

/// The page that hands the run on to Perfetto.
const PERFETTO: &str = "perfetto.html";

/// Why there is no window.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoWindow {
    /// The copy of the Perfetto UI is none.
    #[error(transparent)]
    Perfetto(#[from] NoCopy),
    /// It cannot be served.
    #[error(transparent)]
    View(#[from] ViewError),
}

/// A window that is open.
pub(crate) struct Window {
    view: View,
    place: &'static str,
    opened: bool,
}

impl Window {
    /// Opens it; who knows the address can look through it from then on.
    pub(crate) fn open(arguments: &WindowArguments, subject: Subject) -> Result<Self, NoWindow> {
        let perfetto = match &arguments.perfetto_ui {
            Some(path) => Some(Copy::open(path)?),
            None => perfetto::find().map(|(_, copy)| copy),
        };
        let view = View::open(subject, Settings { port: arguments.port, perfetto })?;
        let place = if arguments.perfetto { PERFETTO } else { "" };
        Ok(Self { view, place, opened: !arguments.no_open })
    }

    /// Its address, which is for the user alone.
    pub(crate) fn url(&self) -> String {
        format!("{}{}", self.view.url(), self.place)
    }

    /// Opens a browser, where there is somebody to look at it.
    pub(crate) fn show(&self) {
        if !self.opened || !has_screen(|name| env::var_os(name)) {
            return;
        }
        let browser = env::var_os("BROWSER").filter(|value| !value.is_empty()).unwrap_or_else(|| "xdg-open".into());
        let Some(browser) = first(&browser, env::var_os("PATH").as_deref()) else { return };
        // Command lines can be read by every user of the machine: this address leads there once.
        let Ok(ticket) = self.view.ticket(self.place) else { return };
        // The shell leaves it behind, so that it is no child of ours: those are waited for.
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", r#""$0" "$1" >/dev/null 2>&1 &"#]).arg(browser).arg(ticket).stdin(Stdio::null());
        drop(shell.status());
    }
}

/// Whether there is a screen.
fn has_screen(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(|name| variable(name).is_some_and(|value| !value.is_empty()))
}

/// The first of some browsers that there is; they stand between colons, and what would be filled in for the address is left out.
fn first(browsers: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    let mut browsers = browsers.as_bytes().split(|byte| *byte == b':').map(OsStr::from_bytes);
    browsers.find_map(|browser| Some(Program::find(browser, path).ok()?.path().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_browser_that_is_there_is_taken() {
        assert_eq!(first(OsStr::new("no-such-browser:sh"), None), Some(PathBuf::from("/bin/sh")));
        assert_eq!(first(OsStr::new("no-such-browser"), None), None);
    }

    #[test]
    fn without_a_screen_nothing_is_opened() {
        assert!(!has_screen(|_| None));
        assert!(!has_screen(|name| (name == "DISPLAY").then(OsString::new)));
        assert!(has_screen(|name| (name == "WAYLAND_DISPLAY").then(|| "wayland-0".into())));
    }
}
