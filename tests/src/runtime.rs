//! The SYCL runtime releases under `target/runtime`, made by `scripts/setup`.

use std::{env, path::PathBuf, process::Command, sync::OnceLock};

use crate::repository;

/// A release of the SYCL runtime that the tests run against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Release {
    /// 2025.3.3: the UR loader is a separate library; no IPC entry points, and no SYCL interface to them.
    R2025_3,
    /// 2026.0.0: the UR loader is a separate library; four IPC entry points.
    R2026_0,
    /// 2026.1.2: as 2026.0.
    R2026_1,
    /// 2026.2.0: the UR loader is inside libsycl; eleven IPC entry points.
    R2026_2,
}

impl Release {
    /// The version, as `scripts/setup --runtime` takes it.
    pub fn version(self) -> &'static str {
        match self {
            Self::R2025_3 => "2025.3.3",
            Self::R2026_0 => "2026.0.0",
            Self::R2026_1 => "2026.1.2",
            Self::R2026_2 => "2026.2.0",
        }
    }

    /// The virtual environment that holds the release. The first call sets it up, unless that has been done before.
    /// Several tests may ask at once.
    pub fn folder(self) -> PathBuf {
        static READY: [OnceLock<PathBuf>; 4] = [const { OnceLock::new() }; 4];
        READY[self as usize].get_or_init(|| environment(self.version())).clone()
    }

    /// The Python interpreter of the environment.
    pub fn python(self) -> PathBuf {
        self.folder().join("bin/python")
    }

    /// One of the release's shared libraries.
    pub fn library(self, name: &str) -> PathBuf {
        let library = self.folder().join("lib").join(name);
        assert!(library.exists(), "the runtime {} has no {name}", self.version());
        library
    }
}

/// The `mpiexec` of an MPI launcher, by the name of its file in `scripts/requirements`. Sets it up if necessary.
pub fn launcher(release: &str) -> PathBuf {
    environment(release).join("bin/mpiexec")
}

/// The folder of a Level Zero loader that is no device: Debian's 1.8.12. Sets it up if necessary.
pub fn level_zero_loader() -> PathBuf {
    static READY: OnceLock<()> = OnceLock::new();
    READY.get_or_init(|| set_up(&["--loader"]));
    repository().join("target/loader")
}

/// The folder with Environment Modules and Lmod: Debian's packages, unpacked. Sets it up if necessary.
pub fn modules() -> PathBuf {
    static READY: OnceLock<()> = OnceLock::new();
    READY.get_or_init(|| set_up(&["--modules"]));
    repository().join("target/modules")
}

/// The folder with libraries that are preloaded beside urscope: Debian's packages, unpacked. Sets it up if necessary.
pub fn neighbours() -> PathBuf {
    static READY: OnceLock<()> = OnceLock::new();
    READY.get_or_init(|| set_up(&["--neighbours"]));
    repository().join("target/neighbours")
}

/// Sets up the browser for the tests of the page, if necessary.
pub fn browser() {
    static READY: OnceLock<()> = OnceLock::new();
    READY.get_or_init(|| set_up(&["--browser"]));
}

/// The file of pyright that node runs. Sets it up if necessary.
pub fn pyright() -> PathBuf {
    static READY: OnceLock<()> = OnceLock::new();
    READY.get_or_init(|| set_up(&["--types"]));
    repository().join("target/types/node_modules/pyright/index.js")
}

/// The Python interpreter of a virtual environment for one package, by the name of its file in `scripts/requirements`.
/// Sets it up if necessary.
pub fn python_with(package: &str) -> PathBuf {
    environment(package).join("bin/python")
}

/// Names a folder with environments that are taken in place of those that are pinned. `scripts/clients --newest` sets
/// it.
pub(crate) const ENVIRONMENTS: &str = "URSCOPE_E2E_ENVIRONMENTS";

/// A virtual environment, by the name of its file in `scripts/requirements`. Sets it up if necessary.
fn environment(name: &str) -> PathBuf {
    let other = env::var_os(ENVIRONMENTS).map(|folder| PathBuf::from(folder).join(name));
    if let Some(other) = other.filter(|other| other.exists()) {
        return other;
    }
    set_up(&["--tests", "--runtime", name]);
    repository().join("target/runtime").join(name)
}

fn set_up(arguments: &[&str]) {
    let output = Command::new(repository().join("scripts/setup"))
        .args(arguments)
        .output()
        .expect("scripts/setup cannot be started");
    assert!(
        output.status.success(),
        "scripts/setup could not make what the tests need:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
