//! The environment variables of the device, one row each.
//!
//! Read once, when the device is first used. README.md repeats the rows, and a test compares the two. Must never fail:
//! an invalid value is reported in one line on stderr, and the default applies.

use std::{env, sync::LazyLock, time::Duration};

use super::{faults, log};

/// One environment variable.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The value that applies when it is not set.
    pub default: &'static str,
    /// What it does, in one line of Markdown: README.md has the same.
    pub doc: &'static str,
    read: fn(&str, &mut Settings) -> Option<()>,
}

/// All variables.
pub const VARIABLES: [Variable; 16] = [
    Variable {
        name: "ZE_SOFT_LOG",
        default: "0",
        doc: "`1` reports on stderr which unimplemented functions are called (each once), and each refused call: `ze_soft: FUNCTION: REASON`",
        read: |text, to| set(&mut to.log, switch(text)),
    },
    Variable {
        name: "ZE_SOFT_DEVICES",
        default: "1",
        doc: "number of devices, 1 to 64",
        read: |text, to| set(&mut to.devices, text.parse().ok().filter(|count| (1..=64).contains(count))),
    },
    Variable {
        name: "ZE_SOFT_SUB_DEVICES",
        default: "0",
        doc: "number of sub-devices of each device, 2 to 16; `0` for none",
        read: |text, to| set(&mut to.sub_devices, text.parse().ok().filter(|count| matches!(count, 0 | 2..=16))),
    },
    Variable {
        name: "ZE_FLAT_DEVICE_HIERARCHY",
        default: "COMPOSITE",
        doc: "how devices with sub-devices are listed: `COMPOSITE`: devices, which have sub-devices; `FLAT`: sub-devices as \
              devices; `COMBINED`: sub-devices, which know their device",
        read: |text, to| set(&mut to.hierarchy, hierarchy(text)),
    },
    Variable {
        name: "ZE_AFFINITY_MASK",
        default: "default",
        doc: "the devices that the process sees, by their numbers: `1`, `0,2`; a sub-device with `COMPOSITE` as `0.1`, otherwise \
              by its number among all; `default` or nothing: all",
        read: |text, to| set(&mut to.affinity, affinity(text)),
    },
    Variable {
        name: "ZE_SOFT_PEERS",
        default: "on",
        doc: "whether devices access each other's memory; `off`: each opens only memory of its own and of the host",
        read: |text, to| set(&mut to.peers, either(text, "off", "on")),
    },
    Variable {
        name: "ZE_SOFT_MEMORY",
        default: "4G",
        doc: "memory of each device in bytes, with an optional suffix K, M, G or T; at least 1M",
        read: |text, to| set(&mut to.memory, bytes(text).filter(|size| *size >= 1 << 20)),
    },
    Variable {
        name: "ZE_SOFT_SYSTEM_USM",
        default: "off",
        doc: "whether the device says that kernels may use all memory of the process, for example that of malloc(3): most \
              GPUs cannot, so a program that asks runs differently with `on`",
        read: |text, to| set(&mut to.system_usm, either(text, "off", "on")),
    },
    Variable {
        name: "ZE_SOFT_IP_VERSION",
        default: "20.1.0",
        doc: "device IP version, as `0x05004000` or `major.minor.revision`; the Unified Runtime selects its v2 adapter \
              from 20.1.0 on and its v1 adapter below",
        read: |text, to| set(&mut to.ip_version, ip_version(text)),
    },
    Variable {
        name: "ZE_SOFT_EXPORT_FD",
        default: "each",
        doc: "how physical memory is exported: `each` query returns a new descriptor, which the caller closes; `one` \
              returns the same descriptor every time and never closes it, as Intel's driver does",
        read: |text, to| set(&mut to.one_export_fd, either(text, "each", "one")),
    },
    Variable {
        name: "ZE_SOFT_IMPORT_FD",
        default: "copy",
        doc: "how physical memory is imported: `copy` duplicates the descriptor; `keep` takes its number over and closes it \
              when the memory is destroyed, whatever file it stands for by then, as Intel's driver does",
        read: |text, to| set(&mut to.keep_import_fd, either(text, "copy", "keep")),
    },
    Variable {
        name: "ZE_SOFT_HANDLES",
        default: "opaque",
        doc: "what IPC handles of memory and of event pools hold: `opaque`: the descriptor and the process that it is one of, so \
              that the bytes can be opened as they are; `descriptor`: only the descriptor, in place of which a program stores one \
              of its own, as with older drivers of Intel",
        read: |text, to| set(&mut to.bare_handles, either(text, "opaque", "descriptor")),
    },
    Variable {
        name: "ZE_SOFT_OPEN_FD",
        default: "none",
        doc: "what an open of memory leaves behind when it is closed: `none`; `leak` one descriptor of this process for each \
              open, which nothing closes, as Intel's driver did",
        read: |text, to| set(&mut to.leak_open_fd, either(text, "none", "leak")),
    },
    Variable {
        name: "ZE_SOFT_ENGINE",
        default: "auto",
        doc: "what runs kernels: the path of an OpenCL library for the CPU; `auto` looks for `libintelocl.so` beside the \
              Unified Runtime of the process, and then where the dynamic linker does; `off` for none",
        read: |text, to| set(&mut to.engine, engine(text)),
    },
    Variable {
        name: "ZE_SOFT_DELAY",
        default: "0",
        doc: "how long each command that copies, fills or runs a kernel waits before it begins, for example `200us`, `50ms` or \
              `1s`, at most one minute: what a program has forgotten to wait for really is unfinished; `until-wait`: until \
              something waits for it or asks whether it has ended, and 10 ms longer on memory that processes share, at most 1 s",
        read: |text, to| set(&mut to.delay, delay(text)),
    },
    Variable {
        name: "ZE_SOFT_FAIL",
        default: "none",
        doc: "functions that fail without doing anything, each with the `ze_result_t` to return, for example \
              `zeMemOpenIpcHandle:0x70000002`; separate several with commas",
        read: |text, to| set(&mut to.faults, faults(text)),
    },
];

/// The values of the variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Report unimplemented functions and failed calls on stderr.
    pub log: bool,
    /// Number of devices.
    pub devices: u32,
    /// Number of sub-devices of each device.
    pub sub_devices: u32,
    /// How devices with sub-devices are listed.
    pub hierarchy: Hierarchy,
    /// The devices and sub-devices that the process sees; all if there are none.
    pub affinity: Vec<(u32, Option<u32>)>,
    /// Devices access each other's memory.
    pub peers: bool,
    /// Memory of each device, in bytes.
    pub memory: u64,
    /// The device reports that kernels may use all memory of the process.
    pub system_usm: bool,
    /// Device IP version, packed as Intel's drivers do: 10 bits architecture, 8 release, 8 reserved, 6 revision.
    pub ip_version: u32,
    /// Return one exported descriptor for each physical memory, instead of one for each query.
    pub one_export_fd: bool,
    /// Take over the caller's descriptor at an import and close it with the memory, instead of duplicating it.
    pub keep_import_fd: bool,
    /// Leave the process out of IPC handles of memory and of event pools.
    pub bare_handles: bool,
    /// Duplicate the descriptor of memory at each open, and never close the duplicate.
    pub leak_open_fd: bool,
    /// The engine that runs kernels.
    pub engine: Engine,
    /// How long each command with work on memory waits before it begins.
    pub delay: Delay,
    /// C names of functions that fail, and the codes that they return.
    pub faults: Vec<(String, u32)>,
}

/// How long a command waits before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// This long.
    Time(Duration),
    /// Until something waits for it.
    UntilWait,
}

impl Default for Delay {
    fn default() -> Self {
        Self::Time(Duration::ZERO)
    }
}

/// The engine that runs kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The first library that is found.
    #[default]
    Auto,
    /// None.
    Off,
    /// The library with this path.
    Path(String),
}

/// How devices with sub-devices are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hierarchy {
    /// As devices, which have sub-devices.
    #[default]
    Composite,
    /// Their sub-devices, as devices.
    Flat,
    /// Their sub-devices, each with a root device.
    Combined,
}

impl Settings {
    /// The settings for the values that `lookup` returns, and a warning for each value that is invalid.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> (Self, Vec<String>) {
        let mut settings = Self::default();
        let mut warnings = Vec::new();
        for row in &VARIABLES {
            // A test checks that all defaults can be parsed.
            let _ = (row.read)(row.default, &mut settings);
            if let Some(text) = lookup(row.name)
                && (row.read)(&text, &mut settings).is_none()
            {
                warnings.push(format!(
                    "{}={text:?} is not a valid value, so the default {} applies; expected: {}",
                    row.name, row.default, row.doc
                ));
            }
        }
        (settings, warnings)
    }
}

/// The settings of this process.
pub fn get() -> &'static Settings {
    static SETTINGS: LazyLock<Settings> = LazyLock::new(|| {
        let (settings, warnings) =
            Settings::read(|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()));
        for line in warnings {
            log::warn(&line);
        }
        if !settings.log {
            faults::stop_logging();
        }
        for (function, code) in &settings.faults {
            faults::fail(function, *code);
        }
        settings
    });
    &SETTINGS
}

fn set<T>(place: &mut T, value: Option<T>) -> Option<()> {
    *place = value?;
    Some(())
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "" | "0" => Some(false),
        _ => None,
    }
}

/// True for `second`, false for `first`, `None` for anything else.
fn either(text: &str, first: &str, second: &str) -> Option<bool> {
    [first, second].contains(&text).then_some(text == second)
}

fn faults(text: &str) -> Option<Vec<(String, u32)>> {
    let fault = |text: &str| {
        let (function, code) = text.trim().split_once(':')?;
        let code = u32::from_str_radix(code.strip_prefix("0x")?, 16).ok()?;
        (code != 0 && faults::can_fail(function)).then(|| (function.to_owned(), code))
    };
    match text {
        "" | "none" => Some(Vec::new()),
        _ => text.split(',').map(fault).collect(),
    }
}

fn hierarchy(text: &str) -> Option<Hierarchy> {
    match text {
        "" | "COMPOSITE" => Some(Hierarchy::Composite),
        "FLAT" => Some(Hierarchy::Flat),
        "COMBINED" => Some(Hierarchy::Combined),
        _ => None,
    }
}

fn affinity(text: &str) -> Option<Vec<(u32, Option<u32>)>> {
    let entry = |entry: &str| match entry.trim().split_once('.') {
        None => Some((entry.trim().parse().ok()?, None)),
        Some((device, part)) => Some((device.parse().ok()?, Some(part.parse().ok()?))),
    };
    match text {
        "" | "default" => Some(Vec::new()),
        _ => text.split(',').map(entry).collect(),
    }
}

fn engine(text: &str) -> Option<Engine> {
    match text {
        "" | "auto" => Some(Engine::Auto),
        "off" => Some(Engine::Off),
        path => path.contains('/').then(|| Engine::Path(path.to_owned())),
    }
}

fn delay(text: &str) -> Option<Delay> {
    if text == "until-wait" {
        return Some(Delay::UntilWait);
    }
    duration(text).filter(|time| *time <= Duration::from_mins(1)).map(Delay::Time)
}

fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number = digits.parse().ok()?;
    match text.get(digits.len()..)? {
        "" => (number == 0).then_some(Duration::ZERO),
        "us" => Some(Duration::from_micros(number)),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

fn bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.char_indices().next_back()? {
        (at, 'k' | 'K') => (text.get(..at)?, 10),
        (at, 'm' | 'M') => (text.get(..at)?, 20),
        (at, 'g' | 'G') => (text.get(..at)?, 30),
        (at, 't' | 'T') => (text.get(..at)?, 40),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn ip_version(text: &str) -> Option<u32> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u32::from_str_radix(hex, 16).ok();
    }
    let mut parts = text.split('.').map(str::parse::<u32>);
    let major = parts.next()?.ok()?;
    let minor = parts.next()?.ok()?;
    let revision = parts.next()?.ok()?;
    let fits = major < 1 << 10 && minor < 1 << 8 && revision < 1 << 6 && parts.next().is_none();
    fits.then_some(major << 22 | minor << 14 | revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> (Settings, Vec<String>) {
        Settings::read(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn defaults_are_readable() {
        let (settings, warnings) = Settings::read(|_| None);
        let expected =
            Settings { devices: 1, peers: true, memory: 4 << 30, ip_version: 0x0500_4000, ..Settings::default() };
        assert_eq!(settings, expected);
        assert!(warnings.is_empty());
    }

    #[test]
    fn values_are_read_in_all_their_forms() {
        assert_eq!(read("ZE_SOFT_MEMORY", "512M").0.memory, 512 << 20);
        assert_eq!(read("ZE_SOFT_MEMORY", "1048576").0.memory, 1 << 20);
        assert_eq!(read("ZE_SOFT_IP_VERSION", "0x03038004").0.ip_version, 0x0303_8004);
        assert_eq!(read("ZE_SOFT_IP_VERSION", "12.60.7").0.ip_version, 12 << 22 | 60 << 14 | 7);
        assert_eq!(read("ZE_SOFT_DEVICES", "3").0.devices, 3);
        assert_eq!(read("ZE_SOFT_SUB_DEVICES", "2").0.sub_devices, 2);
        assert_eq!(read("ZE_FLAT_DEVICE_HIERARCHY", "FLAT").0.hierarchy, Hierarchy::Flat);
        assert_eq!(read("ZE_FLAT_DEVICE_HIERARCHY", "COMBINED").0.hierarchy, Hierarchy::Combined);
        assert_eq!(read("ZE_AFFINITY_MASK", "").0.affinity, []);
        assert_eq!(read("ZE_AFFINITY_MASK", "2, 0.1").0.affinity, [(2, None), (0, Some(1))]);
        assert!(!read("ZE_SOFT_PEERS", "off").0.peers);
        assert!(read("ZE_SOFT_SYSTEM_USM", "on").0.system_usm);
        assert!(read("ZE_SOFT_LOG", "1").0.log);
        assert!(read("ZE_SOFT_EXPORT_FD", "one").0.one_export_fd);
        assert!(read("ZE_SOFT_IMPORT_FD", "keep").0.keep_import_fd);
        assert!(read("ZE_SOFT_HANDLES", "descriptor").0.bare_handles);
        assert!(read("ZE_SOFT_OPEN_FD", "leak").0.leak_open_fd);
        for (text, expected) in [("0", 0), ("200us", 200), ("50ms", 50_000), ("2s", 2_000_000), ("0s", 0)] {
            assert_eq!(read("ZE_SOFT_DELAY", text).0.delay, Delay::Time(Duration::from_micros(expected)), "{text}");
        }
        assert_eq!(read("ZE_SOFT_ENGINE", "off").0.engine, Engine::Off);
        assert_eq!(read("ZE_SOFT_ENGINE", "/a/b.so").0.engine, Engine::Path("/a/b.so".into()));
        let faults = read("ZE_SOFT_FAIL", "zeMemOpenIpcHandle:0x70000002, zexCounterBasedEventCreate2:0x1").0.faults;
        let expected = [("zeMemOpenIpcHandle", 0x7000_0002), ("zexCounterBasedEventCreate2", 1)];
        assert_eq!(faults, expected.map(|(function, code)| (function.to_owned(), code)));
    }

    #[test]
    fn an_invalid_value_is_one_warning_and_the_default_applies() {
        let cases: [(&str, &[&str]); 16] = [
            ("ZE_SOFT_MEMORY", &["lots", "99999999999T", "4K"]),
            ("ZE_SOFT_DEVICES", &["0", "-1"]),
            ("ZE_SOFT_SUB_DEVICES", &["1", "17"]),
            ("ZE_FLAT_DEVICE_HIERARCHY", &["flat"]),
            ("ZE_AFFINITY_MASK", &["0,", "0.1.2", "-1"]),
            ("ZE_SOFT_PEERS", &["1"]),
            ("ZE_SOFT_SYSTEM_USM", &["1"]),
            ("ZE_SOFT_IP_VERSION", &["20.1", "0xzz"]),
            ("ZE_SOFT_LOG", &["yes"]),
            ("ZE_SOFT_EXPORT_FD", &["two"]),
            ("ZE_SOFT_IMPORT_FD", &["one"]),
            ("ZE_SOFT_HANDLES", &["bare"]),
            ("ZE_SOFT_OPEN_FD", &["keep"]),
            ("ZE_SOFT_ENGINE", &["on"]),
            ("ZE_SOFT_DELAY", &["5", "ms", "-1ms", "1.5s", "1 s", "61s", "99999999999999999999s"]),
            (
                "ZE_SOFT_FAIL",
                &[
                    "zeMemOpenIpcHandle",
                    "zeMemOpenIpcHandle:1879048194",
                    "zeMemOpenIpcHandle:0x0",
                    "zeNothing:0x70000002",
                    "zeSamplerCreate:0x70000002",
                    "zeDriverGetDefaultContext:0x70000002",
                    "zeInit:0x78000001,",
                ],
            ),
        ];
        for (name, value) in cases.iter().flat_map(|(name, values)| values.iter().map(move |value| (*name, *value))) {
            let (settings, warnings) = read(name, value);
            assert_eq!(settings, Settings::read(|_| None).0, "{name}={value}");
            assert_eq!(warnings.len(), 1, "{name}={value}");
            assert!(warnings[0].contains(name) && warnings[0].contains(value));
        }
    }

    #[test]
    fn the_readme_has_every_row() {
        let readme = include_str!("../../README.md");
        for row in &VARIABLES {
            let line = format!("| `{}` | `{}` | {} |", row.name, row.default, row.doc);
            assert!(readme.contains(&line), "README.md lacks the line:\n{line}");
        }
    }
}
