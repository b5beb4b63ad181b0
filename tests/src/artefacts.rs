//! The binaries that the tests run: the command `urscope`, the preloaded library and the software device.

use std::path::{Path, PathBuf};
use std::{env, process::Command, sync::OnceLock};

use crate::repository;

/// The command `urscope`.
pub fn command() -> PathBuf {
    profile_folder().join("urscope")
}

/// The library for `LD_PRELOAD`, for a process that `urscope run` starts without it.
pub fn preloaded() -> PathBuf {
    profile_folder().join("liburscope.so")
}

/// The folder of our libraries, and the profile of cargo that they are built with.
pub fn libraries() -> (PathBuf, String) {
    let folder = profile_folder();
    let profile = profile_of(&folder).to_owned();
    (folder, profile)
}

/// Makes the tree that a package has, from what the tests run, in a folder that does not exist yet.
pub fn stage_tree(tree: &Path) {
    let output = Command::new("python3")
        .arg(repository().join("scripts/packages/stage_tree.py"))
        .args([&profile_folder(), tree])
        .output()
        .expect("python3 cannot be started");
    assert!(output.status.success(), "no tree was made:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Cargo's target folder. What the tests build goes there, too.
pub fn target_folder() -> PathBuf {
    let profile = unbuilt_profile_folder();
    profile.parent().expect("a profile's folder lies in the target folder").to_path_buf()
}

/// The folder of the profile that this test was built with. All our binaries in it are up to date.
///
/// `cargo test` builds a library of another package only if it links it, so a test builds them itself.
fn profile_folder() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = unbuilt_profile_folder();
        build(&folder);
        folder
    });
    folder.clone()
}

/// A test's executable is `<target>/<profile>/deps/<name>`.
fn unbuilt_profile_folder() -> PathBuf {
    let test = env::current_exe().expect("a test knows its own executable");
    let deps = test.parent().expect("an executable lies in a folder");
    deps.parent().expect("deps lies in the profile's folder").to_path_buf()
}

/// The profile that is built in a folder. That of the profile `dev` has another name.
fn profile_of(folder: &Path) -> &str {
    match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    }
}

fn build(profile_folder: &Path) {
    let profile = profile_of(profile_folder);
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        // The whole workspace and this test, as `scripts/test` builds them: cargo would build a part, or the libraries
        // without the features that tests ask for, a second time.
        .args(["build", "--quiet", "--workspace", "--lib", "--bins", "--test", "end_to_end", "--profile", profile])
        .arg("--target-dir")
        .arg(target_folder())
        .current_dir(repository())
        .output()
        .expect("cargo cannot be started");
    assert!(
        output.status.success(),
        "cargo could not build what the tests run:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
