//! `urscope doctor` recognises each release.

use urscope_tests::{Release, run::urscope};

fn the_runtime_is_found(release: Release, entry_points: &str) {
    let folder = release.folder();
    let runtime = folder.to_str().expect("a path in UTF-8");
    let ended = urscope(&["doctor", "--device", "software", "--runtime", runtime]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let expected = [release.version(), entry_points, "libur_adapter_level_zero_v2.so.0", "pidfd_getfd"];
    for word in expected {
        assert!(ended.stdout.contains(word), "nothing about {word}:\n{}", ended.stdout);
    }
}

#[test]
fn the_runtime_2026_2_is_found() {
    the_runtime_is_found(Release::R2026_2, "urIPC entry points: 11");
}

#[test]
fn the_runtime_2026_1_is_found() {
    the_runtime_is_found(Release::R2026_1, "urIPC entry points: 4");
}

#[test]
fn the_runtime_2026_0_is_found() {
    the_runtime_is_found(Release::R2026_0, "urIPC entry points: 4");
}

#[test]
fn a_machine_without_a_runtime_gets_advice() {
    let ended = urscope(&["doctor", "--runtime", "/nowhere"]);
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("-> "), "{}", ended.stdout);
}
