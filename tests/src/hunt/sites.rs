//! The lines of the interpreter's call sites.

use std::fs;
use std::sync::OnceLock;

use super::draft::Site;
use crate::apps;

/// The file with the call sites.
pub(super) const FILE: &str = "hunt_sites.hpp";

/// The line of a call site.
pub(super) fn line(site: Site) -> usize {
    static LINES: OnceLock<Vec<usize>> = OnceLock::new();
    let lines = LINES.get_or_init(read);
    *lines.get(site.0).unwrap_or_else(|| panic!("a program has more than {} call sites", lines.len()))
}

/// The lines by the numbers of their sites, which ascend.
fn read() -> Vec<usize> {
    let text = fs::read_to_string(apps::source(FILE)).expect("a source can be read");
    let numbered = text.lines().zip(1..).filter_map(|(text, line)| {
        let number = text.trim().strip_prefix("SITE(")?.strip_suffix(");")?;
        Some((number.parse::<usize>().ok()?, line))
    });
    let sites: Vec<(usize, usize)> = numbered.collect();
    assert!(sites.iter().enumerate().all(|(index, (number, _))| index == *number), "{FILE} leaves out a site");
    sites.into_iter().map(|(_, line)| line).collect()
}
