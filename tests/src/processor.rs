//! What programs that we did not compile need of the processor.
//!
//! Ours, and all others of the tests, run on every processor of x86-64 that has AVX2: from Haswell on. One that needs
//! more is named here, with where that is known from. Where the processor lacks it, its test tries what can be tried,
//! and [`untried`] says what could not be.

use std::fs::{self, File};
use std::io::Write as _;

use crate::artefacts;

/// What the library of Intel SHMEM 1.6.0 needs, as `/proc/cpuinfo` names it: all of it is compiled for processors from
/// Sapphire Rapids on. `objdump -d libishmem.so` shows instructions of these in functions that every program calls.
pub const INTEL_SHMEM: &[&str] = &["avx512f", "avx512bw", "avx512dq", "avx512vl", "movdir64b"];

/// Which of these features the processor lacks.
pub fn lacks(needed: &[&'static str]) -> Vec<&'static str> {
    missing(needed, &fs::read_to_string("/proc/cpuinfo").expect("the kernel lists the features of the processor"))
}

fn missing(needed: &[&'static str], cpuinfo: &str) -> Vec<&'static str> {
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    let has = |feature: &&&str| flags.split_ascii_whitespace().any(|flag| flag == **feature);
    needed.iter().filter(|feature| !has(feature)).copied().collect()
}

/// Notes that a program could not be tried as it is, because the processor lacks these features. `scripts/test` prints
/// all notes at its end.
pub fn untried(what: &str, lacking: &[&str]) {
    let line = format!("{what} cannot run on this processor, which lacks {}\n", lacking.join(", "));
    let path = artefacts::target_folder().join("untried.txt");
    let file = File::options().create(true).append(true).open(&path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

#[test]
fn missing_features_are_those_that_no_line_of_flags_has() {
    let haswell =
        "processor\t: 0\nflags\t\t: fpu sse2 avx avx2 bmi1\nprocessor\t: 1\nflags\t\t: fpu sse2 avx avx2 bmi1\n";
    assert_eq!(missing(&["avx2", "avx512f", "avx5"], haswell), ["avx512f", "avx5"]);
    assert_eq!(missing(INTEL_SHMEM, haswell), INTEL_SHMEM);
    assert_eq!(missing(&["sse2"], ""), ["sse2"]);
}
