//! The call sites of calls, while an analysis goes on: the innermost frame of the program that is no wrapper.
//!
//! Only frames of the program are looked up, so no library of the runtime is loaded. What was looked up is kept.

use std::{collections::HashMap, sync::Arc};

use urscope_schema::trace::records::Module;

use super::{FoundWrappers, Symbolizer, Wrappers};
use crate::analysis::{Analysis, Frame, Location, Options, Stacks};

/// Where the program made a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallSite {
    /// In few words: `exchange_halo, ring.cpp:37`.
    pub name: String,
    /// The source file, if it is known.
    pub file: Option<String>,
    /// The line in it, counted from 1.
    pub line: Option<u32>,
}

/// Looks up call sites.
pub struct CallSites {
    symbols: Symbolizer,
    wrappers: Wrappers,
    found_wrappers: Arc<FoundWrappers>,
    processes: Vec<(Stacks, Vec<Module>)>,
    known: HashMap<(u32, u64), Option<Arc<CallSite>>>,
}

/// The number of call stacks that are looked up. Each costs some memory.
const KEPT: usize = 1 << 18;

impl CallSites {
    /// Knows no process yet. Takes the directories of symbols and the wrappers from the options.
    pub fn new(options: &Options) -> Self {
        let symbols = Symbolizer::new(&options.symbols);
        let wrappers = options.wrappers.clone();
        let found_wrappers = Arc::default();
        let processes = Vec::new();
        let known = HashMap::new();
        Self { symbols, wrappers, found_wrappers, processes, known }
    }

    /// Knows no process yet, and the wrappers of an analysis.
    pub fn agreeing_with(analysis: &mut Analysis<'_>, options: &Options) -> Self {
        let mut sites = Self::new(options);
        sites.agree_with(analysis);
        sites
    }

    /// Looks up call sites as an analysis does in its findings and answers, with the wrappers that it has found so
    /// far.
    pub fn agree_with(&mut self, analysis: &mut Analysis<'_>) {
        let found = analysis.found_wrappers();
        if self.found_wrappers != found {
            (self.found_wrappers, self.known) = (found, HashMap::new());
        }
    }

    /// Adds the process with the next number.
    pub fn add(&mut self, stacks: &Stacks) {
        self.processes.push((stacks.clone(), Vec::new()));
    }

    /// The number of processes that were added.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// The call site of a call with this stack; `None` if the stack was not recorded or does not lead through the
    /// program.
    pub fn get(&mut self, process: u32, stack: Option<u64>) -> Option<Arc<CallSite>> {
        let stack = stack?;
        let key = (process, stack);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if self.known.len() >= KEPT {
            return None;
        }
        let site = self.find(process, stack).map(Arc::new);
        self.known.insert(key, site.clone());
        site
    }

    fn find(&mut self, process: u32, number: u64) -> Option<CallSite> {
        let (stacks, modules) = self.processes.get_mut(process as usize)?;
        let stack = stacks.stack(number)?;
        if modules.len() < stacks.module_count() {
            *modules = stacks.modules();
        }
        let stack = self.symbols.outside_of_runtime(modules, stack);
        let mut place = Location { stack, ..Location::default() };
        self.wrappers.mark(&mut place, &self.found_wrappers);
        let Frame { file, line, .. } = place.call_site()?;
        Some(CallSite { name: place.site.clone()?, file: file.clone(), line: *line })
    }
}
