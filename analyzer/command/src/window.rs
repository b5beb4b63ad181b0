//! Shows the page of a run in a browser: starts the server, builds the address and opens the browser on a private file
//! that leads there.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::{env, error::Error, os::unix::ffi::OsStrExt as _, path::PathBuf};

use crate::view::perfetto::{self, Copy};
use urscope_analyzer::sources::Sources;

use crate::view::{Settings, Subject, View};
use crate::{arguments::WindowArguments, output::complain, program::Program};

/// The page that passes the run to Perfetto.
const PERFETTO: &str = "perfetto.html";

pub(crate) struct Window {
    view: View,
    place: &'static str,
    opened: bool,
}

impl Window {
    /// Starts to serve the page to everybody who knows its address.
    pub(crate) fn open(
        arguments: &WindowArguments,
        sources: Sources,
        subject: Subject,
    ) -> Result<Self, Box<dyn Error>> {
        let perfetto = match &arguments.perfetto_ui {
            Some(path) => Some(Copy::open(path)?),
            None => perfetto::find().map(|(_, copy)| copy),
        };
        let view = View::open(subject, Settings { port: arguments.port, perfetto, sources })?;
        let place = if arguments.perfetto { PERFETTO } else { "" };
        Ok(Self { view, place, opened: !arguments.no_open })
    }

    /// The address of the page. Show it only to the user.
    pub(crate) fn url(&self) -> String {
        format!("{}{}", self.view.url(), self.place)
    }

    /// Opens a browser if there is a display. Every user of the machine can read its command line, so it opens a file
    /// of this user alone, which `private` makes and which leads to the address.
    pub(crate) fn show(&self, private: impl FnOnce(&str) -> Result<PathBuf, String>) {
        if !self.opened || !has_display(|name| env::var_os(name)) {
            return;
        }
        let browser = env::var_os("BROWSER").filter(|value| !value.is_empty()).unwrap_or_else(|| "xdg-open".into());
        let Some(browser) = first(&browser, env::var_os("PATH").as_deref()) else { return };
        let page = match private(&self.url()) {
            Ok(page) => page,
            Err(error) => return complain(format_args!("no browser is opened: {error}")),
        };
        // The shell detaches the browser. As a child of ours it would be waited for.
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", r#""$0" "$1" >/dev/null 2>&1 &"#]).arg(browser).arg(page).stdin(Stdio::null());
        drop(shell.status());
    }
}

fn has_display(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(|name| variable(name).is_some_and(|value| !value.is_empty()))
}

/// The first installed browser of a list with colons. Placeholders for the address are not supported.
fn first(browsers: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    let mut browsers = browsers.as_bytes().split(|byte| *byte == b':').map(OsStr::from_bytes);
    browsers.find_map(|browser| Some(Program::find(browser, path).ok()?.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_installed_browser_is_used() {
        assert_eq!(first(OsStr::new("no-such-browser:sh"), None), Some(PathBuf::from("/bin/sh")));
        assert_eq!(first(OsStr::new("no-such-browser"), None), None);
    }

    #[test]
    fn without_a_display_no_browser_is_opened() {
        assert!(!has_display(|_| None));
        assert!(!has_display(|name| (name == "DISPLAY").then(OsString::new)));
        assert!(has_display(|name| (name == "WAYLAND_DISPLAY").then(|| "wayland-0".into())));
    }
}
