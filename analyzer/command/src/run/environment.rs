//! Computes the changes to the environment of the program. It must change nothing else.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use urscope_schema::host::{placeholders, ranks::Ranks};

use super::xpti;
use crate::{output::QUIET, program::is_sanitizer};

const FORMAT: &str = "URSCOPE_FORMAT";

/// The variable that switches validation, and the one that says what becomes of a call that violates a rule.
const VALIDATE: &str = "URSCOPE_VALIDATE";
const ON_ERROR: &str = "URSCOPE_ON_ERROR";

/// The variable that says what traces show of command lines.
const COMMAND_LINE: &str = "URSCOPE_COMMAND_LINE";

/// What a run adds to the environment of its program.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) library: Option<PathBuf>,
    /// The library of AddressSanitizer that the program is linked with. It refuses to start behind any other library.
    pub(crate) sanitizer: Option<String>,
    /// The directory for the traces, and the name of the run. Both are absent in an untraced run.
    pub(crate) traces: Option<(PathBuf, String)>,
    /// The socket by which processes tell that they make their traces; empty if there is none.
    pub(crate) observer: String,
    pub(crate) ranks: Ranks,
    pub(crate) inner_calls: bool,
    pub(crate) trace_limit: Option<u32>,
    pub(crate) command_lines: bool,
    /// Nobody asked for findings while the program runs.
    pub(crate) only_records: bool,
    /// The traces are judged at the end.
    pub(crate) is_judged: bool,
    /// The directory of a Level Zero loader.
    pub(crate) device: Option<PathBuf>,
    /// The directory of a CUDA driver.
    pub(crate) cuda: Option<PathBuf>,
    /// The dispatcher of XPTI, where calls are to be observed by it.
    pub(crate) dispatcher: Option<PathBuf>,
}

impl Surroundings {
    /// The variables to set, given the current ones. An error if a path in them would not be absolute.
    pub(crate) fn changes(
        &self,
        current: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Vec<(&'static str, OsString)>, String> {
        let mut changes = Vec::new();
        if let Some(library) = &self.library {
            let others = current("LD_PRELOAD").unwrap_or_default();
            changes.push(("LD_PRELOAD", self.preloaded(absolute(library)?, &others)));
        }
        if let Some((folder, run)) = &self.traces {
            absolute(folder)?;
            // The placeholders are already replaced, so a percent sign is literal.
            changes.push(("URSCOPE_DIR", placeholders::escape(folder).into()));
            changes.push(("URSCOPE_RUN", run.into()));
            if !self.observer.is_empty() {
                changes.push(("URSCOPE_OBSERVER", (&self.observer).into()));
            }
            if !self.ranks.are_all() {
                changes.push(("URSCOPE_RANKS", self.ranks.to_string().into()));
            }
            if self.inner_calls {
                changes.push(("URSCOPE_INNER_CALLS", "1".into()));
            }
            if let Some(limit) = self.trace_limit {
                changes.push(("URSCOPE_TRACE_LIMIT", limit.to_string().into()));
            }
            if self.command_lines && current(COMMAND_LINE).is_none() {
                changes.push((COMMAND_LINE, "full".into()));
            }
            // It costs the program least, and the run is merged into a Chrome trace afterwards.
            if current(FORMAT).is_none() {
                changes.push((FORMAT, "binary".into()));
            }
            // What is found while the program runs is found again in its traces, at no cost to the program.
            if self.only_records && current(VALIDATE).is_none() && current(ON_ERROR).is_none() {
                changes.push((VALIDATE, "off".into()));
                // A line for each process tells nothing that the report does not.
                if self.is_judged && current(QUIET).is_none() {
                    changes.push((QUIET, "1".into()));
                }
            }
        }
        if let (Some(dispatcher), Some(library)) = (&self.dispatcher, &self.library) {
            // What the user has switched off stays so: other subscribers, and the layers of others.
            let is_on = current(xpti::ENABLE).is_none_or(|value| !matches!(value.to_str(), Some("0" | "false" | "")));
            let others = current(xpti::SUBSCRIBERS).filter(|_| is_on).unwrap_or_default();
            changes.push((xpti::ENABLE, "1".into()));
            if current(xpti::DISPATCHER).is_none_or(|named| named.is_empty()) {
                changes.push((xpti::DISPATCHER, absolute(dispatcher)?.into()));
            }
            changes.push((xpti::SUBSCRIBERS, behind(&others, absolute(library)?)));
            let layers = current(xpti::LAYERS).unwrap_or_default();
            changes.push((xpti::LAYERS, behind(&layers, OsStr::new(xpti::LAYER))));
        }
        if let Some(folder) = self.device.as_ref().or(self.cuda.as_ref()) {
            let others = current("LD_LIBRARY_PATH").unwrap_or_default();
            changes.push(("LD_LIBRARY_PATH", in_front(absolute(folder)?, &others, b":;")));
        }
        if let Some(folder) = &self.device {
            changes.push(("ZEL_LIBRARY_PATH", absolute(folder)?.into()));
            // The user may have selected one of several software devices.
            if !current("ONEAPI_DEVICE_SELECTOR")
                .is_some_and(|selector| selector.as_bytes().starts_with(b"level_zero:"))
            {
                changes.push(("ONEAPI_DEVICE_SELECTOR", "level_zero:*".into()));
            }
        }
        Ok(changes)
    }

    /// The list of preloaded libraries: `library` in front of all `others` but those of sanitizers.
    fn preloaded(&self, library: &OsStr, others: &OsStr) -> OsString {
        let (first, others): (Vec<_>, Vec<_>) =
            entries(others, b" :").partition(|other| is_sanitizer(&other.to_string_lossy()));
        let own = self.sanitizer.as_ref().filter(|_| first.is_empty()).map(OsStr::new);
        let others = others.into_iter().filter(|other| *other != library);
        joined(own.into_iter().chain(first).chain([library]).chain(others))
    }
}

/// A path for a variable of the program. The program may go to a directory where a relative one leads to files of
/// another user.
fn absolute(path: &Path) -> Result<&OsStr, String> {
    let wrong = || format!("{} is not an absolute path, so no program can be started with it", path.display());
    if path.is_absolute() { Ok(path.as_os_str()) } else { Err(wrong()) }
}

/// Moves or adds an entry to the front of a list. Removes empty entries, which mean the current directory.
fn in_front(first: &OsStr, others: &OsStr, separators: &[u8]) -> OsString {
    joined([first].into_iter().chain(entries(others, separators).filter(|other| *other != first)))
}

/// Adds an entry to the end of a list that commas separate, unless it has it.
fn behind(others: &OsStr, last: &OsStr) -> OsString {
    let others = entries(others, b",").filter(|other| *other != last);
    others.chain([last]).collect::<Vec<_>>().join(OsStr::new(","))
}

fn entries<'a>(list: &'a OsStr, separators: &'a [u8]) -> impl Iterator<Item = &'a OsStr> {
    let entries = list.as_bytes().split(|byte| separators.contains(byte)).map(OsStr::from_bytes);
    entries.filter(|entry| !entry.is_empty())
}

fn joined<'a>(entries: impl Iterator<Item = &'a OsStr>) -> OsString {
    let entries: Vec<_> = entries.collect();
    entries.join(OsStr::new(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(surroundings: &Surroundings, current: &[(&str, &str)]) -> Vec<(&'static str, String)> {
        surroundings
            .changes(|name| current.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
            .unwrap()
            .into_iter()
            .map(|(name, value)| (name, value.into_string().unwrap()))
            .collect()
    }

    /// Each path of a run once: absolute, and as a relative one.
    #[test]
    fn no_variable_has_a_relative_path() {
        let with = |relative: usize| {
            let path = |at: usize| PathBuf::from(if at == relative { "own" } else { "/own" });
            Surroundings {
                library: Some(path(0)),
                traces: Some((path(1), "r1".into())),
                device: Some(path(2)),
                dispatcher: Some(path(3)),
                ..Surroundings::default()
            }
        };
        for (name, value) in changes(&with(4), &[]) {
            let is_relative = |entry: &str| entry.contains("own") && !entry.starts_with("/own");
            assert!(!value.split([':', ',']).any(is_relative), "{name}={value}");
        }
        let cuda = Surroundings { cuda: Some("own".into()), ..Surroundings::default() };
        for run in (0..4).map(with).chain([cuda]) {
            let error = run.changes(|_| None).unwrap_err();
            assert!(error.starts_with("own is not an absolute path"), "{error}");
        }
    }

    #[test]
    fn an_untraced_run_on_the_native_device_changes_nothing() {
        assert!(changes(&Surroundings::default(), &[]).is_empty());
    }

    #[test]
    fn the_library_is_put_before_other_preloaded_libraries() {
        let traced = Surroundings {
            library: Some("/x/liburscope.so".into()),
            traces: Some(("/t".into(), "r1".into())),
            ..Surroundings::default()
        };
        let before = [("LD_PRELOAD", "/a.so /x/liburscope.so:/b.so"), (FORMAT, "chrome")];
        let [preload, directory, run] = &changes(&traced, &before)[..] else { panic!("three variables") };
        assert_eq!(*preload, ("LD_PRELOAD", "/x/liburscope.so:/a.so:/b.so".into()));
        assert_eq!(*directory, ("URSCOPE_DIR", "/t".into()));
        assert_eq!(*run, ("URSCOPE_RUN", "r1".into()));
        assert_eq!(changes(&traced, &[])[0].1, "/x/liburscope.so");
    }

    #[test]
    fn each_wish_sets_its_variable_unless_the_user_has_set_it() {
        let traced = || Surroundings { traces: Some(("/t".into(), "r1".into())), ..Surroundings::default() };
        let full = || Surroundings { command_lines: true, ..traced() };
        let records = || Surroundings { only_records: true, ..traced() };
        let judged = || Surroundings { is_judged: true, ..records() };
        let ranks = Surroundings { ranks: "0,3-5".parse().unwrap(), ..traced() };
        let inner = Surroundings { inner_calls: true, ..traced() };
        let limited = Surroundings { trace_limit: Some(64), ..traced() };
        for (run, current, name, expected) in [
            (limited, ("", ""), "URSCOPE_TRACE_LIMIT", Some("64")),
            (traced(), ("", ""), "URSCOPE_TRACE_LIMIT", None),
            (ranks, ("", ""), "URSCOPE_RANKS", Some("0,3-5")),
            (full(), ("", ""), COMMAND_LINE, Some("full")),
            (full(), (COMMAND_LINE, "program"), COMMAND_LINE, None),
            (traced(), ("", ""), COMMAND_LINE, None),
            (inner, ("", ""), "URSCOPE_INNER_CALLS", Some("1")),
            (traced(), ("", ""), "URSCOPE_INNER_CALLS", None),
            (traced(), ("", ""), FORMAT, Some("binary")),
            (traced(), (FORMAT, "chrome"), FORMAT, None),
            (judged(), ("", ""), VALIDATE, Some("off")),
            (records(), ("", ""), VALIDATE, Some("off")),
            (records(), ("", ""), QUIET, None),
            (judged(), (VALIDATE, "on"), VALIDATE, None),
            (judged(), (ON_ERROR, "abort"), VALIDATE, None),
            (traced(), ("", ""), VALIDATE, None),
            (judged(), ("", ""), QUIET, Some("1")),
            (judged(), (QUIET, "0"), QUIET, None),
            (judged(), (VALIDATE, "on"), QUIET, None),
        ] {
            let found = changes(&run, &[current]).into_iter().find(|(known, _)| *known == name);
            assert_eq!(found.as_ref().map(|(_, value)| value.as_str()), expected, "{name} with {current:?}: {run:?}");
        }
    }

    #[test]
    fn a_sanitizer_stays_in_front() {
        for (linked, others, expected) in [
            (None, "/a.so /l/libasan.so.8", "/l/libasan.so.8:/x/liburscope.so:/a.so"),
            (Some("libasan.so.8"), "/a.so", "libasan.so.8:/x/liburscope.so:/a.so"),
            (Some("libasan.so.8"), "/l/libasan.so.8", "/l/libasan.so.8:/x/liburscope.so"),
        ] {
            let library = Some("/x/liburscope.so".into());
            let sanitizer = linked.map(str::to_owned);
            let run = Surroundings { library, sanitizer, ..Surroundings::default() };
            assert_eq!(changes(&run, &[("LD_PRELOAD", others)])[0].1, expected);
        }
        assert!(is_sanitizer("/l/libclang_rt.asan-x86_64.so") && !is_sanitizer("/libasan.so.8/other.so"));
    }

    #[test]
    fn xpti_is_switched_on_beside_what_the_user_has_there() {
        let observed = Surroundings {
            library: Some("/x/liburscope.so".into()),
            dispatcher: Some("/r/libxptifw.so.1".into()),
            ..Surroundings::default()
        };
        let of_xpti = |current: &[(&str, &str)]| changes(&observed, current).split_off(1);
        let expected = |subscribers: &str, layers: &str| {
            vec![
                ("XPTI_TRACE_ENABLE", "1".to_owned()),
                ("XPTI_FRAMEWORK_DISPATCHER", "/r/libxptifw.so.1".to_owned()),
                ("XPTI_SUBSCRIBERS", subscribers.to_owned()),
                ("UR_ENABLE_LAYERS", layers.to_owned()),
            ]
        };
        assert_eq!(of_xpti(&[]), expected("/x/liburscope.so", "UR_LAYER_TRACING"));
        assert_eq!(
            of_xpti(&[
                ("XPTI_SUBSCRIBERS", "/a.so"),
                ("UR_ENABLE_LAYERS", "UR_LAYER_FULL_VALIDATION,UR_LAYER_TRACING")
            ]),
            expected("/a.so,/x/liburscope.so", "UR_LAYER_FULL_VALIDATION,UR_LAYER_TRACING")
        );
        let off = of_xpti(&[("XPTI_TRACE_ENABLE", "0"), ("XPTI_SUBSCRIBERS", "/a.so")]);
        assert_eq!(off, expected("/x/liburscope.so", "UR_LAYER_TRACING"), "it was switched off");
        let named = of_xpti(&[("XPTI_FRAMEWORK_DISPATCHER", "/own/libxptifw.so")]);
        assert_eq!(named.iter().filter(|(name, _)| *name == "XPTI_FRAMEWORK_DISPATCHER").count(), 0);
    }

    #[test]
    fn the_software_device_is_found_first() {
        let device = Surroundings { device: Some("/d".into()), ..Surroundings::default() };
        assert_eq!(
            changes(&device, &[("LD_LIBRARY_PATH", "/opt/lib:"), ("ONEAPI_DEVICE_SELECTOR", "cuda:*")]),
            [
                ("LD_LIBRARY_PATH", "/d:/opt/lib".into()),
                ("ZEL_LIBRARY_PATH", "/d".into()),
                ("ONEAPI_DEVICE_SELECTOR", "level_zero:*".into()),
            ]
        );
        assert_eq!(changes(&device, &[("ONEAPI_DEVICE_SELECTOR", "level_zero:1")]).len(), 2);
    }
}
