//! The files of the page, which are compiled into the command.

macro_rules! assets {
    ($($name:literal,)*) => {
        /// All files of the page, as names in the URL and contents. Other files must not be served.
        pub(super) const ASSETS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/", $name)))),*];
    };
}

assets! {
    "api.js", "app.js", "call_search.js", "calls.js", "chart.js", "clipboard.js", "controls.js", "density.js", "dom.js", "explanation.js",
    "filters.js", "finding.js", "finding_sides.js", "format.js", "graph.js", "grid.js", "handle.js", "handles.js",
    "handover.js", "help.js", "in_view.js", "index.html", "input.js", "lanes.js", "lifetime.js", "lifetimes.js", "marks.js",
    "matrix.js", "measures.js", "neighbours.js", "overview.js", "page.css", "painter.js", "perfetto.html",
    "perfetto.js", "range.js", "router.js", "ruler.js", "run.js", "saved.js", "saved_page.js", "theme.js", "timeline.js",
    "timeline_filter.js", "timeline_range.js", "timeline_selection.js", "timeline_state.js", "unordered.js", "views.css",
}

/// The file of an empty name.
const INDEX: &str = "index.html";

/// Finds a file by its name. An empty name is the page itself.
pub(super) fn asset(name: &str) -> Option<&'static (&'static str, &'static str)> {
    let name = if name.is_empty() { INDEX } else { name };
    ASSETS.iter().find(|(known, _)| *known == name)
}

/// The extension of a name, without the dot.
pub(super) fn ending(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// The content type of a file, by the extension of its name.
pub(super) fn content_type(name: &str) -> &'static str {
    match ending(name) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "wasm" => "application/wasm",
        "woff2" => "font/woff2",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    }
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
        let listed: BTreeSet<_> = ASSETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(found, listed, "the table in assets.rs does not match the files of ui/");
    }

    #[test]
    fn names_outside_the_table_are_not_found() {
        assert_eq!(asset("").map(|(name, _)| *name), Some("index.html"));
        for name in ["README.md", "../Cargo.toml", "index.html/", "./index.html"] {
            assert!(asset(name).is_none(), "{name}");
        }
    }
}
