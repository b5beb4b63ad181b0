//! Every environment variable of the shim, one row each.
//!
//! The table makes the parsed [`Knobs`], the list in `docs/knobs.md` and the message for a variable that is none.
//! Reading happens once, when the library is loaded; a bad value is said and its default used.

use std::{ffi::OsString, path::PathBuf, sync::OnceLock};

use parking_lot::Mutex;
use urscope_schema::placeholders;

use crate::raw::process;

macro_rules! knobs {
    ($($(#[doc = $doc:literal])* $field:ident: $type:ty = $name:literal, default $default:literal, example $example:literal;)*) => {
        /// The values of all knobs.
        #[derive(Debug)]
        pub struct Knobs {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        /// One row: name, default, example, text.
        pub const ROWS: &[(&str, &str, &str, &str)] = &[$(($name, $default, $example, concat!($($doc),*)),)*];

        impl Knobs {
            fn from(variable: impl Fn(&str) -> Option<OsString>, complain: &mut Vec<String>) -> Self {
                Self { $($field: {
                    let value = variable($name).unwrap_or_else(|| $default.into());
                    <$type as Knob>::parse(&value).unwrap_or_else(|expected| {
                        complain.push(format!("{}={value:?} is not {expected}; {:?} is used instead", $name, $default));
                        <$type as Knob>::fallback($default)
                    })
                },)* }
            }
        }
    };
}

knobs! {
    /// The directory that trace files are written to; it is made if it does not exist. `%h` in it is the host's name, `%p` the number of the process, `%r` its rank under an MPI launcher (from PMI_RANK, OMPI_COMM_WORLD_RANK, PMIX_RANK, SLURM_PROCID or PALS_RANKID; `none` without one), `%%` a percent sign.
    directory: PathBuf = "URSCOPE_DIR", default ".", example "/tmp/traces";
    /// 1: says nothing on stderr when all is well. Problems are always said.
    quiet: bool = "URSCOPE_QUIET", default "0", example "1";
    /// 0: takes no call stacks, so that findings name no source lines.
    stacks: bool = "URSCOPE_STACKS", default "1", example "0";
    /// Who shares memory and events: `adapter` (the runtime's own, passed through), `level_zero` (urscope's own), or `auto`: the adapter where it has the entry point, urscope where it has not.
    backend: Choice = "URSCOPE_BACKEND", default "auto", example "level_zero";
    /// off: only traces. on: also looks for mistakes while the program runs, and says them on stderr.
    validate: OnOff = "URSCOPE_VALIDATE", default "on", example "off";
    /// What becomes of a call with a mistake: `report` (it is passed on), `refuse` (it gets the documented error and goes no further), or `abort` (the program ends).
    on_error: OnError = "URSCOPE_ON_ERROR", default "report", example "refuse";
    /// The name of the run that this process belongs to; `urscope run` sets it.
    run: String = "URSCOPE_RUN", default "", example "3f2a";
}

/// A type that a knob can have.
trait Knob: Sized {
    /// The value, or what was expected.
    fn parse(text: &OsString) -> Result<Self, &'static str>;

    /// The value of a default, which always parses.
    fn fallback(default: &str) -> Self;
}

impl Knob for PathBuf {
    fn parse(text: &OsString) -> Result<Self, &'static str> {
        if text.is_empty() { Err("a directory") } else { Ok(text.into()) }
    }

    fn fallback(default: &str) -> Self {
        default.into()
    }
}

impl Knob for bool {
    fn parse(text: &OsString) -> Result<Self, &'static str> {
        match text.to_str() {
            Some("0" | "") => Ok(false),
            Some("1") => Ok(true),
            _ => Err("0 or 1"),
        }
    }

    fn fallback(default: &str) -> Self {
        default == "1"
    }
}

/// Which backend serves a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The adapter where it has the entry point, ours where it has not.
    Auto,
    /// The runtime's own adapter.
    Adapter,
    /// Our own.
    LevelZero,
}

impl Knob for Choice {
    fn parse(text: &OsString) -> Result<Self, &'static str> {
        match text.to_str() {
            Some("auto") => Ok(Self::Auto),
            Some("adapter") => Ok(Self::Adapter),
            Some("level_zero") => Ok(Self::LevelZero),
            _ => Err("auto, adapter or level_zero"),
        }
    }

    fn fallback(default: &str) -> Self {
        Self::parse(&default.into()).unwrap_or(Self::Auto)
    }
}

/// Something that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOff(pub bool);

impl Knob for OnOff {
    fn parse(text: &OsString) -> Result<Self, &'static str> {
        match text.to_str() {
            Some("on") => Ok(Self(true)),
            Some("off") => Ok(Self(false)),
            _ => Err("on or off"),
        }
    }

    fn fallback(default: &str) -> Self {
        Self(default == "on")
    }
}

/// What becomes of a call with a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// It is passed on.
    Report,
    /// It is answered with the documented error.
    Refuse,
    /// The program ends.
    Abort,
}

impl Knob for OnError {
    fn parse(text: &OsString) -> Result<Self, &'static str> {
        match text.to_str() {
            Some("report") => Ok(Self::Report),
            Some("refuse") => Ok(Self::Refuse),
            Some("abort") => Ok(Self::Abort),
            _ => Err("report, refuse or abort"),
        }
    }

    fn fallback(default: &str) -> Self {
        Self::parse(&default.into()).unwrap_or(Self::Report)
    }
}

impl Knob for String {
    fn parse(text: &OsString) -> Result<Self, &'static str> {
        text.to_str().map(Into::into).ok_or("text")
    }

    fn fallback(default: &str) -> Self {
        default.into()
    }
}

static KNOBS: OnceLock<Knobs> = OnceLock::new();

/// What was wrong with the environment, until it is said.
static COMPLAINTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Reads the environment, the first time.
pub fn read() -> &'static Knobs {
    KNOBS.get_or_init(|| {
        let mut complaints = Vec::new();
        let mut knobs = Knobs::from(|name| std::env::var_os(name), &mut complaints);
        if placeholders::any(knobs.directory.as_os_str()) {
            let (host, pid) = (process::host(), std::process::id());
            knobs.directory = placeholders::fill(&knobs.directory, &host, pid, rank());
        }
        // The program may change its environment and its directory before the first call.
        rank();
        if let Ok(absolute) = std::path::absolute(&knobs.directory) {
            knobs.directory = absolute;
        }
        complaints.extend(std::env::vars_os().filter_map(|(name, _)| unknown(name.to_str()?)));
        *COMPLAINTS.lock() = complaints;
        knobs
    })
}

/// The rank that a launcher gave this process, as the environment said it the first time.
pub fn rank() -> Option<u32> {
    static RANK: OnceLock<Option<u32>> = OnceLock::new();
    *RANK.get_or_init(|| placeholders::rank(|name| std::env::var_os(name)))
}

/// What was wrong with the environment; empty from the second time on.
///
/// Kept back until tracing begins, because most processes under a preloaded library are none of our business.
pub fn complaints() -> Vec<String> {
    std::mem::take(&mut *COMPLAINTS.lock())
}

/// Variables of the command `urscope` that the processes below it inherit.
const NOT_OURS: &[&str] = &["URSCOPE_LIBRARY"];

fn unknown(name: &str) -> Option<String> {
    if !name.starts_with("URSCOPE_") || NOT_OURS.contains(&name) || ROWS.iter().any(|row| row.0 == name) {
        return None;
    }
    let nearest = ROWS.iter().map(|row| row.0).min_by_key(|known| distance(known, name))?;
    Some(format!("{name} is no variable of urscope; did you mean {nearest}?"))
}

/// How many letters must be put in, left out or exchanged to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let best = (diagonal + usize::from(x != y)).min(left + 1).min(*cell + 1);
            diagonal = std::mem::replace(cell, best);
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// The text of `docs/knobs.md`.
pub fn knobs_md() -> String {
    use std::fmt::Write as _;
    let mut text = String::from(
        "# The environment variables of the shim\n\n\
         Made from the rows of `shim/src/knobs.rs`; `BLESS=1 cargo test -p urscope-shim` renews it.\n\n\
         | variable | default | example | what it does |\n|---|---|---|---|\n",
    );
    for (name, default, example, doc) in ROWS {
        let default = if default.is_empty() { "(empty)" } else { default };
        let _ = writeln!(text, "| `{name}` | `{default}` | `{example}` | {} |", doc.trim());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_value_is_said_and_the_default_used() {
        let mut complaints = Vec::new();
        let knobs = Knobs::from(|name| (name == "URSCOPE_QUIET").then(|| "yes".into()), &mut complaints);
        assert!(!knobs.quiet);
        assert_eq!(complaints, ["URSCOPE_QUIET=\"yes\" is not 0 or 1; \"0\" is used instead"]);
    }

    #[test]
    fn an_unknown_variable_is_told_its_nearest_neighbour() {
        assert_eq!(
            unknown("URSCOPE_DIRECTORY").as_deref(),
            Some("URSCOPE_DIRECTORY is no variable of urscope; did you mean URSCOPE_DIR?")
        );
        assert_eq!(unknown("URSCOPE_DIR"), None);
        assert_eq!(unknown("URSCOPE_LIBRARY"), None);
        assert_eq!(unknown("UR_LOG_LOADER"), None);
    }

    #[test]
    fn every_example_parses() {
        let mut complaints = Vec::new();
        let example = |name: &str| Some(ROWS.iter().find(|row| row.0 == name).unwrap().2.into());
        Knobs::from(example, &mut complaints);
        assert_eq!(complaints, [""; 0]);
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!([distance("", "abc"), distance("abc", "abc"), distance("kitten", "sitting")], [3, 0, 3]);
    }

    #[test]
    fn knobs_md_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/knobs.md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, knobs_md()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), knobs_md(), "run with BLESS=1");
    }
}
