//! Where the engine is looked for.
//!
//! The package `intel-opencl-rt` puts it into the folder of the Unified Runtime. Must never look for it
//! before a program creates a module.

use std::fs;

use crate::platform::settings::{self, Engine};

/// The file name of Intel's OpenCL runtime for the CPU.
const LIBRARY: &str = "libintelocl.so";
/// Libraries of the Unified Runtime, beside which it may lie.
const NEIGHBOURS: [&str; 3] = ["libur_loader.so", "libsycl.so", "libur_adapter_level_zero"];

/// The names to try in this order, for dlopen(3). None if the engine is switched off.
pub(super) fn candidates() -> Vec<String> {
    match &settings::get().engine {
        Engine::Off => Vec::new(),
        Engine::Path(path) => vec![path.clone()],
        Engine::Auto => {
            let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
            let mut found: Vec<String> = folders(&maps).map(|folder| format!("{folder}/{LIBRARY}")).collect();
            found.dedup();
            found.push(LIBRARY.to_owned());
            found
        }
    }
}

/// The folders of the Unified Runtime's libraries in a list of mappings (proc_pid_maps(5)).
fn folders(maps: &str) -> impl Iterator<Item = &str> {
    maps.lines().filter_map(|line| {
        // The path is the sixth field, and may contain blanks.
        let path = line.get(line.find('/')?..)?;
        let (folder, file) = path.rsplit_once('/')?;
        NEIGHBOURS.iter().any(|neighbour| file.starts_with(neighbour)).then_some(folder)
    })
}

#[cfg(test)]
mod tests {
    use super::folders;

    #[test]
    fn folders_are_those_of_the_runtime() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 12 /opt/my env/lib/libur_loader.so.0.12.0\n\
                    7f02-7f03 rw-p 00000000 00:00 0\n\
                    7f04-7f05 r--p 00000000 08:01 13 /usr/lib/libc.so.6\n\
                    7f06-7f07 r--p 00000000 08:01 14 /opt/other/libsycl.so.9\n";
        assert_eq!(folders(maps).collect::<Vec<_>>(), ["/opt/my env/lib", "/opt/other"]);
    }
}
