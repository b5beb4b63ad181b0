//! Sets the soname by which the adapters and libumf load the Level Zero loader, and makes the list of functions that
//! register callbacks: one for each function of the API, whose name follows from that of the function.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

/// The table of functions. No macro can shorten a name, so this script reads the names in the text.
const TABLE: &str = "../src/table.rs";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libze_loader.so.1");
    // A stream's thread may still run when an adapter unloads the library, so its code must stay mapped.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={TABLE}");
    let mut tracers = String::new();
    for name in functions(&fs::read_to_string(TABLE)?) {
        // zel_tracing_register_cb.h has them for the functions of ze_api.h and zer_api.h.
        let stem = ["zer", "ze"].iter().find_map(|prefix| name.strip_prefix(prefix).filter(|stem| is_stem(stem)));
        if let Some(stem) = stem {
            writeln!(tracers, "tracer!(zelTracer{stem}RegisterCallback, {name:?});")?;
        }
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("tracers.rs"), tracers)?;
    Ok(())
}

/// The functions in the rows of the DDI tables: a number and a name, and perhaps a path.
fn functions(table: &str) -> impl Iterator<Item = &str> {
    table.split([';', '{', '}']).filter_map(|row| {
        let mut words = row.split_whitespace();
        words.next()?.parse::<u32>().ok()?;
        words.next()
    })
}

fn is_stem(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_uppercase())
}
