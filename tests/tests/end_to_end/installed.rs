//! What a package installs works wherever it lies: the tree of `scripts/packages/stage_tree.py`, here with the programs
//! that the tests run.
//!
//! That the packages hold this tree, and that their removal leaves nothing, is tested in
//! `python/tests/test_packages.py`.

use std::path::{Path, PathBuf};
use std::{fs, os::unix::fs::symlink, process::Command, time::Duration};

use tempfile::TempDir;
use urscope_tests::run::{Ended, Session};
use urscope_tests::{Release, apps, artefacts, python_with, repository, runtime};

/// CMake, and what checks container files, by the name of their file in `scripts/requirements`.
pub(crate) const CMAKE: &str = "cmake-4.4.4";

/// Other tests run at the same time.
const LIMIT: Duration = Duration::from_mins(4);

/// A folder with a tree in it that was made elsewhere and then moved, and the tree.
fn moved_tree() -> (TempDir, PathBuf) {
    let folder = tempfile::Builder::new().prefix("urscope-installed-").tempdir().expect("no temporary folder");
    let made = folder.path().join("made");
    artefacts::stage_tree(&made);
    let tree = folder.path().join("a folder");
    fs::rename(made, &tree).expect("a folder can be moved");
    (folder, tree)
}

fn session(script: &str, folder: &Path, tree: &Path) -> Ended {
    Session::new(script, folder, LIMIT)
        .env("TREE", tree)
        .env("HOME", folder)
        .env("TOOLS", python_with(CMAKE).parent().expect("an interpreter lies in a folder"))
        .env("URSCOPE_QUIET", "1")
        .env("CORRECT", apps::executable("clean", Release::R2026_2))
        .env("FAULTY", apps::executable("free_while_open", Release::R2026_2))
        .run()
}

/// Runs the correct and the faulty program with the command `urscope` in `PATH`, and says what came of it.
const DEMO: &str = r#"
urscope run --device software --dir correct -- "$CORRECT" >/dev/null 2>correct.txt; echo "correct: $?"
urscope run --device software --dir faulty -- "$FAULTY" >/dev/null 2>faulty.txt; echo "faulty: $?"
grep -c '^error: freed-while-open' faulty.txt
"#;
const DEMO_SAYS: &str = "correct: 0\nfaulty: 1\n1\n";

#[test]
fn the_command_finds_its_libraries_through_links_and_in_lib64() {
    let (folder, tree) = moved_tree();
    let links = folder.path().join("links");
    fs::create_dir(&links).expect("a new folder");
    symlink(tree.join("bin/urscope"), links.join("first")).expect("a link");
    symlink("first", links.join("urscope")).expect("a link to a link");
    let script = format!("PATH={}:$PATH\n{DEMO}", links.display());
    let ended = session(&script, folder.path(), &tree);
    assert_eq!(ended.stdout, DEMO_SAYS, "{ended:#?}");

    fs::rename(tree.join("lib"), tree.join("lib64")).expect("a folder has another name");
    for file in ["correct", "faulty"] {
        fs::remove_dir_all(folder.path().join(file)).expect("the traces are there");
    }
    let ended = session(&script, folder.path(), &tree);
    assert_eq!(ended.stdout, DEMO_SAYS, "{ended:#?}");

    // Without its libraries it says where it looked, and what to do.
    fs::remove_dir_all(tree.join("lib64")).expect("a folder can be removed");
    let ended = session("\"$TREE/bin/urscope\" run -- /bin/true; echo $?", folder.path(), &tree);
    assert_eq!(ended.stdout, "2\n", "{ended:#?}");
    let searched = tree.canonicalize().expect("the tree is there").join("lib64/urscope/liburscope.so");
    assert!(ended.stderr.contains(&searched.display().to_string()), "{ended:#?}");
    assert!(ended.stderr.contains("install urscope again"), "{ended:#?}");
}

/// The function `module` of the shell, with Debian's packages where they were unpacked.
fn module(name: &str) -> String {
    let at = runtime::modules().join("usr").display().to_string();
    let libraries = format!("LD_LIBRARY_PATH='{at}/lib/x86_64-linux-gnu'");
    let command = match name {
        "Environment Modules" => format!(
            "TCL_LIBRARY='{at}/share/tcltk/tcl8.6' '{at}/bin/tclsh8.6' '{at}/lib/x86_64-linux-gnu/modulecmd.tcl'"
        ),
        _ => format!(
            "LUA_PATH='{at}/share/lua/5.3/?.lua;{at}/share/lua/5.3/?/init.lua;{at}/share/lua/5.1/?.lua;{at}/share/lua/5.1/?/init.lua' \
             LUA_CPATH='{at}/lib/x86_64-linux-gnu/lua/5.3/?.so' '{at}/bin/lua5.3' '{at}/share/lmod/8.6.19/libexec/lmod'"
        ),
    };
    format!("module() {{ eval \"$({libraries} {command} bash \"$@\")\"; }}\n")
}

/// Loads the module, uses what it offers, and unloads it again.
fn module_load(module: &str, tree: &Path, modules: &Path, lib: &str) {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let use_it = r#"
export MANPATH=/elsewhere PATH=$PATH:$TOOLS
module load urscope
command -v urscope
pkg-config --modversion urscope
eval "realpath $(pkg-config --variable=preload urscope)"
python3 -c 'from urscope._command import native_file as f; print(f("urscope", "")); print(f("liburscope_ipc.so", ""))'
(IFS=:; for folder in $MANPATH; do ls "$folder/man1/urscope-run.1" 2>/dev/null; done)
echo "$CMAKE_PREFIX_PATH"
"#;
    let after = r#"
module unload urscope
[[ $PATH:$MANPATH:$PYTHONPATH:$CMAKE_PREFIX_PATH:$PKG_CONFIG_PATH != *"$TREE"* && $MANPATH == *elsewhere* ]] && echo unloaded
"#;
    let set_up = format!("module use '{}'\n", modules.display());
    let ended = session(&format!("{module}{set_up}{use_it}{DEMO}{after}"), folder.path(), tree);
    let tree = tree.display();
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "{tree}/bin/urscope\n{version}\n{tree}/{lib}/urscope/liburscope.so\n{tree}/bin/urscope\n{tree}/{lib}/urscope/liburscope_ipc.so\n\
         {tree}/share/man/man1/urscope-run.1\n{tree}\n{DEMO_SAYS}unloaded\n"
    );
    assert_eq!(ended.stdout, expected, "{module}: {}", ended.stderr);
}

fn modules_work(name: &str) {
    let (folder, tree) = moved_tree();
    let tree = tree.canonicalize().expect("the tree is there");
    let module = module(name);
    module_load(&module, &tree, &tree.join("share/modulefiles"), "lib");

    fs::rename(tree.join("lib"), tree.join("lib64")).expect("a folder has another name");
    let version = env!("CARGO_PKG_VERSION");
    let [links, copies] = ["links", "copies"].map(|name| folder.path().join(name));
    for (modules, is_link) in [(&links, true), (&copies, false)] {
        fs::create_dir_all(modules.join("urscope")).expect("a new folder");
        for file in [version.to_owned(), format!("{version}.lua")] {
            let from = tree.join("share/modulefiles/urscope").join(&file);
            let to = modules.join("urscope").join(&file);
            let made = if is_link { symlink(from, to) } else { fs::copy(from, to).map(drop) };
            made.expect("a file of the tree is there");
        }
    }
    module_load(&module, &tree, &links, "lib64");

    // A copy does not know its tree, and says so.
    let script = format!("{module}export MODULEPATH='{}'\nmodule load urscope; command -v urscope", copies.display());
    let ended = session(&script, folder.path(), &tree);
    assert_eq!(ended.stdout, "", "{ended:#?}");
    let said = ended.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("urscope's modulefile was taken out of its tree: link to share/modulefiles/urscope/"),
        "{said}"
    );
}

#[test]
fn environment_modules_load_the_tree_wherever_it_lies() {
    modules_work("Environment Modules");
}

#[test]
fn lmod_loads_the_tree_wherever_it_lies() {
    modules_work("Lmod");
}

#[test]
fn ctest_fails_with_the_finding() {
    let (folder, tree) = moved_tree();
    let script = r#"
cmake -S "$PROJECT" -B build -DCMAKE_PREFIX_PATH="$TREE" -DURSCOPE_DEVICE=software -DRUNTIME="$RUNTIME" -DFAULTY="$FAULTY" >said 2>&1 || cat said
cmake --build build >said 2>&1 || cat said
ctest --test-dir build --output-on-failure --label-regex urscope
echo "ended: $?"
"#;
    let bin = python_with(CMAKE).parent().expect("an interpreter lies in a folder").to_path_buf();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("PATH is text"));
    let session = Session::new(script, folder.path(), LIMIT)
        .env("PATH", path)
        .env("TREE", &tree)
        .env("PROJECT", repository().join("tests/cmake"))
        .env("RUNTIME", Release::R2026_2.folder())
        .env("FAULTY", apps::executable("free_while_open", Release::R2026_2));
    let ended = session.run();
    let said = &ended.stdout;
    for (test, outcome) in [
        ("exchange/correct", "Passed"),
        ("exchange/faulty", "***Failed"),
        ("exchange/known", "Passed"),
        ("exchange/counted", "Passed"),
        ("exchange/nothing", "***Failed"),
    ] {
        let is_line = |line: &str| line.contains(&format!(": {test} .")) && line.contains(outcome);
        assert!(said.lines().any(is_line), "{test}: {said}\n{}", ended.stderr);
    }
    assert!(said.ends_with("ended: 8\n"), "{said}");
    assert!(said.contains("error: freed-while-open in producer, free_while_open.cpp:14, via app::Gpu::free"), "{said}");
    assert!(said.contains("a;b c d\n"), "arguments are passed on as they are: {said}");
    let reports = folder.path().join("build/urscope");
    let failed = |name: &str| fs::read_to_string(reports.join(name)).expect("a report for test servers");
    assert!(failed("exchange_faulty.xml").contains("<failure"));
    assert!(!failed("exchange_correct.xml").contains("<failure"));
}

#[test]
fn cmake_says_what_is_wrong_with_a_test() {
    let (folder, tree) = moved_tree();
    let path = format!(
        "{}:{}",
        python_with(CMAKE).parent().expect("an interpreter lies in a folder").display(),
        std::env::var("PATH").expect("PATH is text")
    );
    for (version, call, expected) in [
        ("0.1", "urscope_add_test(NAME a COMMND true)", "urscope_add_test: unknown arguments: COMMND;true"),
        ("0.1", "urscope_add_test(NAME a)", "urscope_add_test: give NAME and COMMAND"),
        ("0.1", "urscope_add_test(NAME a COMMAND true DEVICE gpu)", "the device 'gpu' of a is unknown"),
        ("99.0", "", "requested version \"99.0\""),
    ] {
        let project = format!(
            "cmake_minimum_required(VERSION 3.16)\nproject(a LANGUAGES NONE)\nfind_package(urscope {version} REQUIRED)\n{call}\n"
        );
        fs::write(folder.path().join("CMakeLists.txt"), project).expect("a file");
        let script = "rm -rf build; cmake -B build -DCMAKE_PREFIX_PATH=\"$TREE\"";
        let ended = Session::new(script, folder.path(), LIMIT).env("PATH", &path).env("TREE", &tree).run();
        assert!(ended.code != 0 && ended.stderr.contains(expected), "{call}: {ended:#?}");
    }
}

#[test]
fn the_container_file_passes_its_linter() {
    let linter = python_with(CMAKE).with_file_name("hadolint");
    let check = |file: &Path| Command::new(&linter).arg("--no-color").arg(file).output().expect("hadolint starts");
    let output = check(&repository().join("packaging/Containerfile"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.is_empty(), "{said}");
    let folder = tempfile::tempdir().expect("no temporary folder");
    let bad = folder.path().join("Containerfile");
    fs::write(&bad, "FROM debian\nRUN cd / && apt-get install urscope\n").expect("a file");
    assert!(!check(&bad).status.success(), "the linter finds nothing");
}
