//! What `README.md` claims, sentence by sentence, and the test of each.
//!
//! A sentence that stands in no row fails, and so does a row whose test is gone. A row without a test says why there is
//! none.

use super::{prose, read};
use urscope_tests::repository;

/// A part of a sentence, and the file with its test, with the name of that or another text in it.
type Claim = (&'static str, &'static str, &'static str);

const E2E: &str = "tests/tests/end_to_end";

const CLAIMS: &[Claim] = &[
    ("finds mistakes in how programs share", "example_command.rs", "each_interface_and_ranks_have_a_program_that"),
    ("It records the calls of all processes", "violations.rs", "the_process_on_the_other_side_is_named"),
    ("The program is not rebuilt", "middleware.rs", "intel_mpi_is_right_and_clean"),
    ("Without a GPU, programs run on", "software_cuda.rs", "what_was_loaded_and_that_the_cuda_runtime_does_not_start"),
    ("This compiles and runs a program", "example_command.rs", "each_mistake_is_found_at_its_line"),
    ("Without urscope it ends with 0", "transparency.rs", "a_program_is_the_same_traced_and_bare"),
    ("Memory that is freed while another process", "violations.rs", "every_rule_is_broken_by_a_program"),
    ("Handles, mappings, physical memory and events", "violations.rs", "every_rule_is_broken_by_a_program"),
    ("Handle data that is used after its end", "violations.rs", "every_rule_is_broken_by_a_program"),
    ("Commands of two processes on the same bytes", "cuda.rs", "each_mistake_is_found_and_nothing_else_by_every_way"),
    ("Opens that the kernel refuses", "circumstances.rs", "a_refusal_of_the_kernel_is_reported_with_its_cause"),
    ("Behavior that the specification allows", "level_zero.rs", "what_the_specification_allows_is_at_most_a_note"),
    ("explains a rule", "documents/commands.rs", "\"docs/reference.md\""),
    ("There are [", "../../../rules/pages/tests/rules/catalog.rs", "rules_counted"),
    ("urscope supports the SYCL runtimes", "doctor.rs", "the_runtime_2026_0_is_found"),
    ("There is no release yet", "../../../scripts/packages/release", "README.md"),
    ("makes the packages", "../../../.github/workflows/ci.yml", "scripts/packages/build"),
    ("Debian package, modules, CMake, Spack", "documents/commands.rs", "what_is_typed_to_install_is_run_or_said"),
    ("From source, with", "documents/commands.rs", "what_is_typed_to_install_is_run_or_said"),
    ("To try it, on Debian 12", "../../../.github/workflows/ci.yml", "scripts/demo"),
    ("Both download into", "../../../scripts/setup", "--require-hashes"),
    ("From the installation to the fixed program", "../../../scripts/newcomer", "sycl python mpi cuda ci"),
    ("traces a program with everything", "fork.rs", "a_child_with_calls_writes_its_own_file"),
    ("checks the machine", "doctor.rs", "a_program_is_examined_without_being_run"),
    ("The report goes to stderr", "export.rs", "a_run_leaves_its_merged_trace"),
    ("Exit codes: the program's", "nothing_to_judge.rs", "a_program_that_fails_keeps_its_exit_code"),
    ("The last rank to end on a host", "launchers.rs", "ranks_that_have_each_an_urscope_are_judged_together_once"),
    ("joins the reports of many nodes", "../../../analyzer/command/tests/commands/merging.rs", "merged_reports_equal"),
    ("Reports are text, JSON", "reports.rs", "a_run_is_reported_in_all_formats_at_once"),
    ("Suppressions and baselines", "reports.rs", "a_baseline_excuses_what_was_found_before"),
    ("GitHub, GitLab, Jenkins, CTest", "installed.rs", "ctest_fails_with_the_finding"),
    ("This shows a run in the browser", "browser.rs", "a_finding_is_followed_to_both_its_sides"),
    ("shows it in a terminal", "top.rs", "a_run_is_followed_from_before_it_begins_to_its_end"),
    ("It was tried on [NVIDIA GPUs]", "", "nobody has run it on an Intel GPU; docs/gpus.md has the reports"),
    ("On a GPU it cannot prove", "", "it takes a GPU; docs/gpus.md has the row free_in_use"),
    ("Adapters inside libsycl are", "xpti.rs", "a_refusal_that_is_not_possible_is_said"),
    (
        "The verdict says so",
        "../../../analyzer/command/src/run/verdict.rs",
        "an_obstacle_stands_for_the_general_reason",
    ),
    ("Slurm was tried on one machine", "../../../scripts/slurm", "three nodes"),
    ("All: [docs/limitations.md]", "documents.rs", "every_relative_link_leads_to_a_file_and_a_heading"),
    ("Licensed under", "../../../python/tests/test_packages.py", "LICENSE-MIT"),
];

/// The sentences of the README, without headings, tables, pictures and comments.
fn sentences(text: &str) -> Vec<String> {
    let is_prose = |line: &&str| !line.starts_with(['#', '|', '!', '<']);
    let mut blocks = vec![String::new()];
    for line in prose(text).lines() {
        if !is_prose(&line) || line.trim().is_empty() || line.starts_with("* ") {
            blocks.push(String::new());
        }
        if let (true, Some(block)) = (is_prose(&line), blocks.last_mut()) {
            *block += line.trim_start_matches("* ");
            *block += " ";
        }
    }
    let ends = blocks.iter().flat_map(|block| block.split_inclusive(". "));
    let words = |sentence: &str| sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    ends.map(words).filter(|sentence| !sentence.is_empty()).collect()
}

#[test]
fn every_claim_of_the_readme_has_its_test() {
    let readme = read(&repository().join("README.md"));
    let sentences = sentences(&readme);
    let unclaimed: Vec<_> =
        sentences.iter().filter(|sentence| !CLAIMS.iter().any(|(claim, ..)| sentence.contains(claim))).collect();
    assert!(unclaimed.is_empty(), "README.md claims what has no row in documents/claims.rs: {unclaimed:#?}");
    for (claim, file, test) in CLAIMS {
        assert!(sentences.iter().any(|sentence| sentence.contains(claim)), "README.md does not say {claim:?}");
        assert!(
            file.is_empty() || read(&repository().join(E2E).join(file)).contains(test),
            "{file} does not hold {test:?}, the test of {claim:?}"
        );
    }
}
