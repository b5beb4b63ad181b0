//! Collects the heads of the rules' files: each is the page of its rule.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let catalog = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../src/catalog");
    println!("cargo::rerun-if-changed={}", catalog.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&catalog)? {
        let path = entry?.path();
        let file = if path.is_dir() { path.join("mod.rs") } else { path.clone() };
        let head: String = fs::read_to_string(&file)?.lines().take_while(|line| line.starts_with("//!")).fold(
            String::new(),
            |mut head, line| {
                head.push_str(line.trim_start_matches("//!").strip_prefix(' ').unwrap_or_default());
                head.push('\n');
                head
            },
        );
        if !head.starts_with("# ") {
            continue;
        }
        let name = path.file_stem().and_then(|name| name.to_str()).ok_or("a file of the catalogue has no name")?;
        println!("cargo::rerun-if-changed={}", file.display());
        files.push((name.to_owned(), head));
    }
    files.sort();
    let mut text = String::from("&[\n");
    for (name, head) in files {
        writeln!(text, "    ({name:?}, {head:?}),")?;
    }
    text.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join("heads.rs"), text)?;
    Ok(())
}
