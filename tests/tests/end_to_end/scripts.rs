//! The scripts work as documented, also on a machine where a tool is missing.

use std::process::{Command, Output};
use std::{fs, os::unix::fs::symlink, path::Path};

use urscope_tests::{Release, apps, artefacts, repository};

fn setup() -> Command {
    let mut command = Command::new(repository().join("scripts/setup"));
    // Any attempt to download something fails at once.
    command.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", "/nowhere").env("https_proxy", "http://127.0.0.1:9");
    command
}

fn text(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_second_setup_does_nothing() {
    let stamp = Release::R2026_2.folder().join("stamp");
    let written = || stamp.metadata().and_then(|metadata| metadata.modified()).expect("set-up leaves a stamp");
    let before = written();
    let output = setup().output().expect("scripts/setup starts");
    assert!(output.status.success(), "{}", text(&output).1);
    assert_eq!(text(&output), (String::new(), String::new()));
    assert_eq!(before, written());
}

/// With a PATH that holds the named tools of this machine and no others.
fn setup_with_tools(tools: &[&str], arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for tool in tools {
        let found = Command::new("sh").args(["-c", "command -v \"$0\"", tool]).output().expect("sh starts");
        let path = text(&found).0;
        assert!(!path.is_empty(), "this machine has no {tool}");
        symlink(path.trim(), folder.path().join(tool)).expect("a link to a tool");
    }
    setup().args(arguments).env("PATH", folder.path()).output().expect("scripts/setup starts")
}

#[test]
fn a_missing_tool_is_named_with_the_command_that_installs_it() {
    let shell = ["bash", "dirname", "uname"];
    let bare = setup_with_tools(&shell, &["--tests"]);
    let (_, complaint) = text(&bare);
    assert_eq!(bare.status.code(), Some(1));
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.contains("apt-get install g++ python3 python3-venv nodejs"), "{complaint}");
    let complaint = text(&setup_with_tools(&shell, &["--browser"])).1;
    assert!(complaint.lines().count() == 1 && complaint.contains("nodejs npm"), "{complaint}");
}

/// The sessions of the documents call scripts through a link. Each would compile every program anew if its path were
/// another.
#[test]
fn a_program_is_compiled_once_also_through_a_link() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    symlink(repository().join("scripts"), folder.path().join("scripts")).expect("a link to the scripts");
    let mut command = Command::new(folder.path().join("scripts/compile-app"));
    let output = command.arg("clean").env("CARGO_TARGET_DIR", artefacts::target_folder()).output();
    let (path, complaint) = text(&output.expect("scripts/compile-app starts"));
    assert_eq!(Path::new(path.trim()), apps::executable("clean", Release::R2026_2), "{complaint}");
}

#[test]
fn an_unknown_release_is_refused_with_the_known_ones() {
    let output = setup().args(["--runtime", "2024.0.0"]).output().expect("scripts/setup starts");
    let (_, complaint) = text(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint.contains("2025.3.3 2026.0.0 2026.1.2 2026.2.0"), "{complaint}");
}

#[test]
fn without_a_registry_no_newest_client_is_tried() {
    let mut command = Command::new(repository().join("scripts/clients"));
    let output = command.arg("--newest").env("PIP_NO_INDEX", "1").output().expect("scripts/clients starts");
    let (table, complaint) = text(&output);
    assert_eq!((output.status.code(), table.as_str()), (Some(2), ""), "{complaint}");
    assert!(complaint.contains("pip cannot tell the newest versions; is PyPI reachable?"), "{complaint}");
}

/// The script that tries a GPU, with our command and programs, on the v2 adapter.
fn try_gpu(arguments: &[&str]) -> Output {
    let mut command = Command::new(repository().join("scripts/try-gpu"));
    command.arg("--urscope").arg(artefacts::command()).args(arguments);
    command.env("CARGO_TARGET_DIR", artefacts::target_folder());
    command.env("SYCL_UR_USE_LEVEL_ZERO_V2", "1").env("UR_LOADER_USE_LEVEL_ZERO_V2", "1");
    // So the machine has no GPU for the runtime, even if it has one.
    command.env("ONEAPI_DEVICE_SELECTOR", "!*:gpu");
    command.output().expect("scripts/try-gpu starts")
}

/// The last column of the rows about programs, by the program.
fn verdicts(report: &str) -> Vec<(&str, &str)> {
    let cells = report.lines().map(|line| line.trim_matches(['|', ' ']).split(" | ").collect::<Vec<_>>());
    let rows = cells.filter(|cells| cells.len() == 6 && !["program", "---"].contains(&cells[0]));
    rows.map(|cells| (cells[0], cells[5])).collect()
}

#[test]
fn without_a_gpu_it_is_said_what_is_needed_to_try_one() {
    let output = try_gpu(&[]);
    let (report, complaint) = text(&output);
    assert_eq!((output.status.code(), report.as_str()), (Some(3), ""), "{complaint}");
    for needed in ["no GPU", "libze_loader.so.1", "libur_adapter_cuda.so.0", "libcuda.so.1", "--device software"] {
        assert!(complaint.contains(needed), "nothing about {needed}: {complaint}");
    }
}

/// The programs of the CUDA driver, on the software device.
#[test]
fn every_row_of_cuda_is_right_on_the_software_device() {
    let output = try_gpu(&[
        "--device",
        "software-cuda",
        "--pairs",
        "500",
        "--only",
        "memory-right,stale-handle,cuda_kernel,by_library",
    ]);
    let (report, complaint) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{report}{complaint}");
    assert_eq!(
        verdicts(&report),
        [("memory-right", "yes"), ("stale-handle", "yes"), ("cuda_kernel", "yes"), ("by_library", "yes")],
        "{report}"
    );
    for shown in ["| watched | libcuda.so.1: ", "| call | bare | traced |\n", "| get | "] {
        assert!(report.contains(shown), "no {shown:?}: {report}");
    }
}

/// The set for GPUs, on the software device.
#[test]
fn every_row_is_right_on_the_software_device() {
    let output = try_gpu(&["--device", "software", "--pairs", "500"]);
    let (report, complaint) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{report}{complaint}");
    let rows = verdicts(&report);
    assert!(rows.len() > 25 && rows.iter().all(|(_, verdict)| *verdict == "yes"), "{report}");
    for shown in
        ["| gpu | ", "| watched | libur_adapter_level_zero_v2.so.0: ", "| threads | bare | traced | validated |\n"]
    {
        assert!(report.contains(shown), "no {shown:?}: {report}");
    }
}

/// As on a machine without a compiler.
#[test]
fn collected_programs_are_tried() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().to_str().expect("a path in UTF-8");
    let output = try_gpu(&["--collect", path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output).1);
    for (device, program) in [("software", "wrong_usm"), ("software-cuda", "stale-handle")] {
        let output = try_gpu(&["--device", device, "--threads", "", "--programs", path, "--only", program]);
        let (report, complaint) = text(&output);
        assert_eq!(output.status.code(), Some(0), "{report}{complaint}");
        assert_eq!(verdicts(&report), [(program, "yes")], "{report}");
    }
}

/// A program that does something else than its name says.
#[test]
fn a_row_that_is_not_as_expected_fails_the_trial() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().to_str().expect("a path in UTF-8");
    for (name, program) in [("which_gpu", "which_gpu"), ("clean", "free_while_open"), ("mistakes", "mistakes")] {
        fs::copy(apps::executable(program, Release::R2026_2), folder.path().join(name)).expect("a copy of a program");
    }
    let arguments = ["--device", "software", "--threads", "", "--programs", path, "--only"];
    let output = try_gpu(&[&arguments[..], &["clean,double_close"]].concat());
    let (report, complaint) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{report}{complaint}");
    assert_eq!(verdicts(&report), [("clean", "no"), ("double_close", "yes")], "{report}");

    let output = try_gpu(&[&arguments[..], &["event_leaked"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output).0);
    assert!(text(&output).1.contains("has no program scenario"), "{}", text(&output).1);
}
