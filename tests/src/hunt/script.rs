//! Scripts that were written by hand: each of `tests/apps/mistakes` has a mistake or something that is worth a note,
//! and those of `tests/apps/found` showed a mistake of urscope once.
//!
//! Above its steps a script says in comments which stages can run it (`# on: v1 v2`), on which of them urscope still
//! judges it wrongly (`# not yet on: v1`), and what must be found (`# expected: ...`, as `scripts/hunt --print` writes
//! it). What was found is kept as a script, because a seed yields another program when the generator changes.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Program, Stage};

/// One script.
#[derive(Clone, Debug)]
pub struct Script {
    file: PathBuf,
    /// The stages that can run it.
    pub stages: Vec<Stage>,
    /// Those of them on which urscope still judges it wrongly.
    pub not_yet: Vec<Stage>,
}

impl Script {
    /// All of a folder, by name.
    pub fn all(folder: &Path) -> Vec<Self> {
        let files = fs::read_dir(folder).expect("a folder of the programs can be listed");
        let mut files: Vec<PathBuf> = files.map(|file| file.expect("a folder can be listed").path()).collect();
        files.sort();
        files.into_iter().map(Self::read).collect()
    }

    fn read(file: PathBuf) -> Self {
        let text = fs::read_to_string(&file).expect("a script can be read");
        let stages = |begin: &str| -> Vec<Stage> {
            let named = |name| Stage::named(name).unwrap_or_else(|| panic!("{}: no stage {name}", file.display()));
            let line = text.lines().find_map(|line| line.strip_prefix(begin));
            line.unwrap_or_default().split_whitespace().map(named).collect()
        };
        let not_yet = stages("# not yet on: ");
        let stages = stages("# on: ");
        assert!(!stages.is_empty(), "{} is for no stage", file.display());
        Self { file, stages, not_yet }
    }

    /// Its file, without the extension.
    pub fn name(&self) -> String {
        self.file.file_stem().expect("a name").to_string_lossy().into_owned()
    }

    /// What must be found, as "severity rule".
    pub fn expected(&self) -> Vec<String> {
        self.program(self.stages[0]).expected.into_iter().map(|expected| expected.finding).collect()
    }

    /// The script as a program for one of its stages.
    pub fn program(&self, stage: Stage) -> Program {
        Program::of_file(&self.file, stage)
    }
}
