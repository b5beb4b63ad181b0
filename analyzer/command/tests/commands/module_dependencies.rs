//! Checks the dependencies between the modules of the command. The command line is the top layer.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The modules that each layer must not depend on. The empty name is the whole crate.
const FORBIDDEN: [(&str, &[&str]); 5] = [
    ("arguments", &["commands", "doctor", "export", "run", "top", "view", "window"]),
    ("output", &["commands", "doctor", "export", "run", "top", "view", "window"]),
    ("export", &["arguments", "commands", "doctor", "output", "run", "top", "view", "window"]),
    ("view", &["arguments", "commands", "doctor", "output", "run", "top", "window"]),
    ("", &["commands"]),
];

#[test]
fn no_module_depends_on_one_above_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (layer, forbidden) in FORBIDDEN {
        let files = sources(&root.join(layer));
        let files: Vec<_> = files.iter().filter(|path| !path.starts_with(root.join("commands"))).collect();
        assert!(files.len() > 1, "{layer} has no modules");
        for path in files {
            let text = fs::read_to_string(path).unwrap_or_default();
            let used: String = text.split_whitespace().collect();
            for module in forbidden {
                let block = used.split("usecrate::{").skip(1).filter_map(|rest| rest.split("};").next());
                let in_block = block.clone().any(|block| {
                    let block = format!(",{block}");
                    [",", "::", "{"].iter().any(|end| block.contains(&format!(",{module}{end}")))
                });
                let direct =
                    used.contains(&format!("crate::{module}::")) || used.contains(&format!("usecrate::{module};"));
                assert!(!in_block && !direct, "{} depends on {module}", path.display());
            }
        }
    }
}
