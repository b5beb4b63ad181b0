//! The dependencies between our crates are those of the design: two data paths that share `schema` and `rules`, and
//! nothing flows back.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// What each crate of the workspace may depend on, of our own crates.
const ALLOWED: [(&str, &[&str]); 13] = [
    ("urscope-schema", &[]),
    ("urscope-rules", &["urscope-schema"]),
    ("urscope-rule-pages", &["urscope-rules", "urscope-schema"]),
    ("urscope-shim", &["urscope-device-interface", "urscope-rules", "urscope-schema"]),
    ("urscope-preload", &["urscope-schema", "urscope-shim"]),
    ("urscope-analyzer", &["urscope-rule-pages", "urscope-rules", "urscope-schema"]),
    ("urscope-command", &["urscope-analyzer", "urscope-rule-pages", "urscope-rules", "urscope-schema"]),
    ("urscope-device", &["urscope-device-interface"]),
    ("urscope-device-interface", &[]),
    ("urscope-device-loader", &["urscope-device"]),
    ("urscope-device-cuda", &["urscope-device"]),
    ("urscope-python", &["urscope-schema", "urscope-shim"]),
    ("urscope-tests", &[]),
];

fn metadata() -> Metadata {
    let manifest = urscope_tests::repository().join("Cargo.toml");
    MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo metadata answers")
}

/// The dependencies in the manifests, of every kind: those of tests count, too.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let packages = metadata().packages;
    let ours: BTreeSet<String> = packages.iter().map(|package| package.name.to_string()).collect();
    packages
        .iter()
        .map(|package| {
            let kinds = [DependencyKind::Normal, DependencyKind::Development, DependencyKind::Build];
            let dependencies = package.dependencies.iter().filter(|dependency| kinds.contains(&dependency.kind));
            let names = dependencies.map(|dependency| dependency.name.clone()).filter(|name| ours.contains(name));
            (package.name.to_string(), names.collect())
        })
        .collect()
}

#[test]
fn every_crate_is_in_the_table() {
    let found: Vec<String> = dependencies().into_keys().collect();
    let mut expected: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn no_crate_depends_on_more_than_the_table_allows() {
    let found = dependencies();
    for (name, allowed) in ALLOWED {
        let too_many: Vec<&String> = found[name].iter().filter(|other| !allowed.contains(&other.as_str())).collect();
        assert!(too_many.is_empty(), "{name} may depend on {allowed:?}, but also depends on {too_many:?}");
    }
}

#[test]
fn no_crate_depends_on_a_leaf() {
    for (name, dependencies) in dependencies() {
        for leaf in [
            "urscope-command",
            "urscope-preload",
            "urscope-device-loader",
            "urscope-device-cuda",
            "urscope-python",
            "urscope-tests",
        ] {
            assert!(!dependencies.contains(leaf), "{name} depends on the leaf {leaf}");
        }
    }
}

#[test]
fn every_dependency_is_justified() {
    let page = std::fs::read_to_string(urscope_tests::repository().join("docs/dependencies.md")).expect("the page");
    let packages = metadata().packages;
    for dependency in packages.iter().flat_map(|package| &package.dependencies) {
        let name = &dependency.name;
        assert!(
            name.starts_with("urscope-") || page.contains(&format!("`{name}`")),
            "docs/dependencies.md does not say why {name} is there"
        );
    }
}
