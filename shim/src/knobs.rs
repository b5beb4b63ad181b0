//! Every environment variable of the shim, one row each.
//!
//! The table generates the parsed [`Knobs`], the list in `docs/knobs.md` and the message for an unknown variable. The
//! environment is read once, when the library is loaded; for an invalid value, the default is used and a message
//! printed. No other module may read the environment.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::{ffi::OsString, path::PathBuf, sync::OnceLock};

use urscope_schema::host::{launcher, placeholders, ranks::Ranks};
use urscope_schema::trace::Form;

use crate::raw::{processes::process, symbols::copies, threads::mutex::Mutex};

macro_rules! knobs {
    ($($(#[doc = $doc:literal])* $field:ident: $type:ty = $name:literal, default $default:literal, example $example:literal;)*) => {
        /// The values of all environment variables of the shim.
        #[derive(Debug)]
        pub struct Knobs {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        /// One row per variable: name, default, example, description.
        pub const ROWS: &[(&str, &str, &str, &str)] = &[$(($name, $default, $example, concat!($($doc),*)),)*];

        impl Knobs {
            fn from(variable: impl Fn(&str) -> Option<OsString>, complain: &mut Vec<String>) -> Self {
                Self { $($field: {
                    let value = variable($name).unwrap_or_else(|| $default.into());
                    <$type as Knob>::parse(&value).unwrap_or_else(|expected| {
                        complain.push(format!("{}={value:?} is not {expected}; {:?} is used instead", $name, $default));
                        // A test parses all defaults.
                        <$type as Knob>::parse(&$default.into()).unwrap_or_default()
                    })
                },)* }
            }
        }
    };
}

knobs! {
    /// The directory for trace files; it is created if it does not exist, except for that of `urscope run`. `%h` stands
    /// for the host's name, `%p` for the process id, `%r` for the rank under an MPI launcher (from PMI_RANK,
    /// OMPI_COMM_WORLD_RANK, PMIX_RANK, SLURM_PROCID or PALS_RANKID; `none` without one), `%%` for a percent sign.
    directory: PathBuf = "URSCOPE_DIR", default ".", example "/tmp/traces";
    /// The form of the trace: `chrome` (lines of JSON, which many tools read) or `binary` (a Fuchsia trace, which costs
    /// the program less). Perfetto opens both. `urscope run` sets `binary`, unless the variable is set.
    format: Form = "URSCOPE_FORMAT", default "chrome", example "binary";
    /// 1: prints nothing on stderr unless there is a problem.
    quiet: bool = "URSCOPE_QUIET", default "0", example "1";
    /// 0: records no call stacks. Findings then have no source lines.
    stacks: bool = "URSCOPE_STACKS", default "1", example "0";
    /// 1: also records the calls of Level Zero that the runtime makes inside of calls that share something. They are
    /// shown inside of these, and not judged. `urscope run --inner-calls` sets it.
    inner_calls: bool = "URSCOPE_INNER_CALLS", default "0", example "1";
    /// Who implements the sharing of memory and events: `adapter` (the runtime's own functions), `level_zero`
    /// (urscope's own), or `auto`: the adapter where it has the functions, otherwise urscope.
    backend: BackendChoice = "URSCOPE_BACKEND", default "auto", example "level_zero";
    /// How calls of Unified Runtime reach urscope: `auto` (the tables of adapters; where none reaches an adapter, its
    /// code, if this build can change that; otherwise XPTI, if the variables of XPTI name urscope), or `xpti` (only
    /// XPTI's stream `ur.call`, which shows calls, but cannot refuse or replace them). `urscope run` sets the variables
    /// of XPTI where they are needed.
    entry: Entry = "URSCOPE_ENTRY", default "auto", example "xpti";
    /// `on`: also checks the rules while the program runs, and reports violations on stderr. `off`: only records the
    /// trace.
    validate: OnOff = "URSCOPE_VALIDATE", default "on", example "off";
    /// What happens to a call that violates a rule: `report` (it is passed on), `refuse` (it returns the documented
    /// error and has no effect), or `abort` (the program ends).
    on_error: OnError = "URSCOPE_ON_ERROR", default "report", example "refuse";
    /// `on`: records when the software device has executed a copy or fill of shared memory, by which races between
    /// processes are found. `off`: does not.
    races: OnOff = "URSCOPE_RACES", default "on", example "off";
    /// The size of a process's trace, in MiB, from which on commands are recorded only if they use memory that has
    /// ended, if they go into a command list that is executed later, and once for each place in the program after each
    /// change of memory. `urscope run --trace-limit` sets it.
    trace_limit: Mebibytes = "URSCOPE_TRACE_LIMIT", default "1024", example "8192";
    /// What the trace shows of the command line: `program` (its first word, and `…` for each other word), or `full`
    /// (all of it, with any secrets). `urscope run --command-lines` sets `full`.
    command_line: CommandLine = "URSCOPE_COMMAND_LINE", default "program", example "full";
    /// The ranks that are traced, as `0,3-5`; the others run as if urscope were not loaded. Empty: all.
    /// `urscope run --ranks` sets it.
    ranks: Ranks = "URSCOPE_RANKS", default "", example "0,3-5";
    /// The name of the run that this process belongs to. `urscope run` sets it.
    run: String = "URSCOPE_RUN", default "", example "3f2a";
    /// The socket by which processes tell `urscope run` of their traces, so that it knows which are missing and how the
    /// processes end. It sets the variable.
    observer: String = "URSCOPE_OBSERVER", default "", example "urscope-3f2a";
}

/// A type that a variable can have.
trait Knob: Default {
    /// The value, or the expected form.
    fn parse(text: &OsString) -> Result<Self, &'static str>;
}

impl Knob for PathBuf {
    fn parse(text: &OsString) -> Result<Self, &'static str> {
        if text.is_empty() { Err("a directory") } else { Ok(text.into()) }
    }
}

impl Knob for String {
    fn parse(text: &OsString) -> Result<Self, &'static str> {
        text.to_str().map(Into::into).ok_or("text")
    }
}

/// A size in MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mebibytes(pub u32);

impl Mebibytes {
    /// The size in bytes.
    pub fn bytes(self) -> u64 {
        u64::from(self.0) << 20
    }
}

impl Knob for Mebibytes {
    fn parse(text: &OsString) -> Result<Self, &'static str> {
        text.to_str().and_then(|text| text.parse().ok()).map(Self).ok_or("a number of MiB")
    }
}

impl Knob for Ranks {
    fn parse(text: &OsString) -> Result<Self, &'static str> {
        text.to_str().unwrap_or("?").parse()
    }
}

/// Types whose values have names. The text in front of them is the expected form.
macro_rules! named {
    ($($type:ty, $expected:literal: $($name:literal => $value:expr),*;)*) => {
        $(impl Knob for $type {
            fn parse(text: &OsString) -> Result<Self, &'static str> {
                match text.to_str() {
                    $(Some($name) => Ok($value),)*
                    _ => Err($expected),
                }
            }
        })*
    };
}

named! {
    bool, "0 or 1": "0" => false, "" => false, "1" => true;
    BackendChoice, "auto, adapter or level_zero": "auto" => Self::Auto, "adapter" => Self::Adapter, "level_zero" => Self::LevelZero;
    Entry, "auto or xpti": "auto" => Self::Auto, "xpti" => Self::Xpti;
    OnOff, "on or off": "on" => Self(true), "off" => Self(false);
    Form, "chrome or binary": "chrome" => Self::Chrome, "binary" => Self::Binary;
    OnError, "report, refuse or abort": "report" => Self::Report, "refuse" => Self::Refuse, "abort" => Self::Abort;
    CommandLine, "full or program": "full" => Self::Full, "program" => Self::Program;
}

/// Which backend implements a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// The adapter if it has the function, otherwise urscope's backend.
    #[default]
    Auto,
    /// The runtime's own adapter.
    Adapter,
    /// urscope's own backend.
    LevelZero,
}

/// How calls of Unified Runtime reach urscope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entry {
    /// By the best entry point for each adapter.
    #[default]
    Auto,
    /// Only by XPTI.
    Xpti,
}

/// `on` or `off`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnOff(pub bool);

/// What happens to a call that violates a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// It is passed on.
    #[default]
    Report,
    /// It returns the documented error and has no effect.
    Refuse,
    /// The program ends.
    Abort,
}

/// What a trace shows of the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandLine {
    /// All of it.
    Full,
    /// Its first word, and the number of words.
    #[default]
    Program,
}

static KNOBS: OnceLock<Knobs> = OnceLock::new();

/// The problems of the environment that are not reported yet.
static COMPLAINTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The values; the first call reads the environment.
pub fn read() -> &'static Knobs {
    KNOBS.get_or_init(|| {
        let mut complaints = Vec::new();
        // One pass over the environment for all names.
        let variables = process::variables(PREFIX);
        let value = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let mut knobs = Knobs::from(value, &mut complaints);
        MAKES_DIRECTORY
            .store(knobs.run.is_empty() || placeholders::any(knobs.directory.as_os_str()), Ordering::Relaxed);
        if placeholders::any(knobs.directory.as_os_str()) {
            let host = process::host();
            let pid = std::process::id();
            knobs.directory = placeholders::fill(&knobs.directory, &host, pid, job().rank);
        }
        // The program may change its environment and its directory before the first call.
        job();
        if let Ok(absolute) = std::path::absolute(&knobs.directory) {
            knobs.directory = absolute;
        }
        complaints.extend(variables.iter().filter_map(|(name, _)| unknown(name)));
        *COMPLAINTS.lock() = complaints;
        knobs
    })
}

/// Whether the directory for traces may be made. That of `urscope run` is there: if it is not, this process sees
/// another root directory or another mount.
pub fn makes_directory() -> bool {
    read();
    MAKES_DIRECTORY.load(Ordering::Relaxed)
}

static MAKES_DIRECTORY: AtomicBool = AtomicBool::new(true);

/// The settings that every call needs, in one word.
#[derive(Clone, Copy, Debug)]
pub struct Hot(u32);

static HOT: AtomicU32 = AtomicU32::new(0);

impl Hot {
    const READ: u32 = 1;
    const BINARY: u32 = 2;
    const STACKS: u32 = 4;
    const VALIDATES: u32 = 8;
    const ADAPTER: u32 = 16;

    fn from_knobs(knobs: &Knobs) -> Self {
        let bit = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        let binary = bit(knobs.format == Form::Binary, Self::BINARY);
        let adapter = bit(knobs.backend != BackendChoice::LevelZero, Self::ADAPTER);
        let stacks = bit(knobs.stacks, Self::STACKS);
        let validates = bit(knobs.validate.0, Self::VALIDATES);
        Self(Self::READ | binary | stacks | validates | adapter)
    }

    /// Whether the trace has the binary form.
    #[inline]
    pub const fn is_binary(self) -> bool {
        self.0 & Self::BINARY != 0
    }

    /// Whether call stacks are recorded.
    #[inline]
    pub const fn has_stacks(self) -> bool {
        self.0 & Self::STACKS != 0
    }

    /// Whether the rules are checked.
    #[inline]
    pub const fn validates(self) -> bool {
        self.0 & Self::VALIDATES != 0
    }

    /// Whether the adapter implements the functions that it has.
    #[inline]
    pub const fn prefers_adapter(self) -> bool {
        self.0 & Self::ADAPTER != 0
    }
}

/// The settings that every call needs.
#[inline]
pub fn hot() -> Hot {
    match HOT.load(Ordering::Relaxed) {
        0 => first_hot(),
        hot => Hot(hot),
    }
}

/// The settings that every call needs, read without a function call, so that a caller need not save its arguments.
/// All are off before the first [`hot`].
#[inline]
pub fn hot_or_nothing() -> Hot {
    Hot(HOT.load(Ordering::Relaxed))
}

#[cold]
fn first_hot() -> Hot {
    let hot = Hot::from_knobs(read());
    HOT.store(hot.0, Ordering::Relaxed);
    hot
}

/// What the launcher of this process says of its job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Job {
    /// The rank of the process; `None` without a launcher.
    pub rank: Option<u32>,
    /// How many ranks are on other hosts; `None` if none is, or if the launcher does not tell.
    pub elsewhere: Option<u32>,
}

/// What the launcher of this process says; later changes of the environment have no effect.
pub fn job() -> Job {
    static JOB: OnceLock<Job> = OnceLock::new();
    *JOB.get_or_init(|| {
        let value = |name: &str| {
            process::variables(name).into_iter().find_map(|(found, value)| (found == name).then_some(value))
        };
        let rank = launcher::rank(value);
        let elsewhere = rank.and_then(|_| launcher::Size::new(value)?.elsewhere());
        Job { rank, elsewhere }
    })
}

/// Whether this process runs as if urscope were not loaded: it has gained rights, so that its user must not control
/// what it reads and writes, its rank is not traced, or another copy of the library works here.
pub fn is_excluded() -> bool {
    process::has_gained_rights() || copies::is_behind_another() || !read().ranks.has(job().rank)
}

/// The problems of the environment; empty from the second call on.
///
/// Reported when tracing begins, because most processes never use Unified Runtime.
pub fn complaints() -> Vec<String> {
    std::mem::take(&mut *COMPLAINTS.lock())
}

/// Variables of the command `urscope` that its child processes inherit.
const COMMAND_VARIABLES: &[&str] = &["URSCOPE_LIBRARY"];

const PREFIX: &str = "URSCOPE_";

fn unknown(name: &str) -> Option<String> {
    if !name.starts_with(PREFIX) || COMMAND_VARIABLES.contains(&name) || ROWS.iter().any(|row| row.0 == name) {
        return None;
    }
    let own = |name: &str| name.trim_start_matches(PREFIX).to_owned();
    // A common prefix counts more than common letters.
    let likeness = |known: &&str| strsim::jaro_winkler(&own(known), &own(name));
    let nearest = ROWS.iter().map(|row| row.0).max_by(|one, other| likeness(one).total_cmp(&likeness(other)))?;
    // The name may contain any character.
    Some(format!("{} is not a variable of urscope; did you mean {nearest}?", name.escape_debug()))
}

/// The text of `docs/knobs.md`.
pub fn knobs_md() -> String {
    use std::fmt::Write as _;
    let mut text = String::from(
        "# The environment variables of the shim\n\n\
         Generated from `shim/src/knobs.rs`; `BLESS=1 cargo test -p urscope-shim` renews it.\n\n\
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
    fn an_invalid_value_is_reported_and_the_default_used() {
        let mut complaints = Vec::new();
        let knobs = Knobs::from(|name| (name == "URSCOPE_QUIET").then(|| "yes".into()), &mut complaints);
        assert!(!knobs.quiet);
        assert_eq!(complaints, ["URSCOPE_QUIET=\"yes\" is not 0 or 1; \"0\" is used instead"]);
    }

    #[test]
    fn an_unknown_variable_is_reported_with_the_nearest_name() {
        assert_eq!(
            unknown("URSCOPE_DIRECTORY").as_deref(),
            Some("URSCOPE_DIRECTORY is not a variable of urscope; did you mean URSCOPE_DIR?")
        );
        assert_eq!(
            unknown("URSCOPE_DIR\x1b[2J\n").as_deref(),
            Some("URSCOPE_DIR\\u{1b}[2J\\n is not a variable of urscope; did you mean URSCOPE_DIR?")
        );
        assert_eq!(unknown("URSCOPE_DIR"), None);
        assert_eq!(unknown("URSCOPE_LIBRARY"), None);
        assert_eq!(unknown("UR_LOG_LOADER"), None);
    }

    #[test]
    fn every_default_and_every_example_parses() {
        let row = |name: &str| *ROWS.iter().find(|row| row.0 == name).unwrap();
        let mut complaints = Vec::new();
        Knobs::from(|name| Some(row(name).1.into()), &mut complaints);
        Knobs::from(|name| Some(row(name).2.into()), &mut complaints);
        assert_eq!(complaints, [""; 0]);
    }

    #[test]
    fn knobs_md_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/knobs.md");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, knobs_md()).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap() == knobs_md(),
            "docs/knobs.md is old: BLESS=1 cargo test -p urscope-shim renews it"
        );
    }
}
