//! The files of the page, which are compiled into the command.

/// A file of the page.
pub(super) struct Asset {
    /// Its name in the URL.
    pub(super) name: &'static str,
    /// Its content type.
    pub(super) kind: &'static str,
    /// Its content.
    pub(super) text: &'static str,
}

macro_rules! assets {
    ($($name:literal: $kind:expr,)*) => {
        /// All files of the page. Other files must not be served.
        pub(super) const ASSETS: &[Asset] = &[$(Asset {
            name: $name,
            kind: $kind,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/", $name)),
        }),*];
    };
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

assets! {
    "api.js": SCRIPT,
    "app.js": SCRIPT,
    "calls.js": SCRIPT,
    "chart.js": SCRIPT,
    "clipboard.js": SCRIPT,
    "controls.js": SCRIPT,
    "density.js": SCRIPT,
    "dom.js": SCRIPT,
    "explanation.js": SCRIPT,
    "filters.js": SCRIPT,
    "finding.js": SCRIPT,
    "finding_sides.js": SCRIPT,
    "format.js": SCRIPT,
    "graph.js": SCRIPT,
    "grid.js": SCRIPT,
    "handle.js": SCRIPT,
    "handles.js": SCRIPT,
    "handover.js": SCRIPT,
    "help.js": SCRIPT,
    "index.html": HTML,
    "input.js": SCRIPT,
    "lanes.js": SCRIPT,
    "lifetime.js": SCRIPT,
    "lifetimes.js": SCRIPT,
    "marks.js": SCRIPT,
    "matrix.js": SCRIPT,
    "measures.js": SCRIPT,
    "neighbours.js": SCRIPT,
    "overview.js": SCRIPT,
    "page.css": CSS,
    "painter.js": SCRIPT,
    "perfetto.html": HTML,
    "perfetto.js": SCRIPT,
    "range.js": SCRIPT,
    "router.js": SCRIPT,
    "ruler.js": SCRIPT,
    "run.js": SCRIPT,
    "theme.js": SCRIPT,
    "timeline.js": SCRIPT,
    "views.css": CSS,
}

/// The file of an empty name.
const INDEX: &str = "index.html";

/// Finds a file by its name. An empty name is the page itself.
pub(super) fn asset(name: &str) -> Option<&'static Asset> {
    let name = if name.is_empty() { INDEX } else { name };
    ASSETS.iter().find(|asset| asset.name == name)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn the_table_contains_all_files_of_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui");
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let found: BTreeSet<_> = names.filter(|name| name != "README.md").collect();
        let listed: BTreeSet<_> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
        assert_eq!(found, listed, "the table in assets.rs does not match the files of ui/");
    }

    #[test]
    fn names_outside_the_table_are_not_found() {
        assert_eq!(asset("").map(|asset| asset.name), Some("index.html"));
        for name in ["README.md", "../Cargo.toml", "index.html/", "./index.html"] {
            assert!(asset(name).is_none(), "{name}");
        }
    }
}
