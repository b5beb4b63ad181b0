//! One hearing of a run, kept for whoever looks at it: what the command would print, and tables of calls and lives.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    calls::CallTable,
    lifetimes::{self, LifetimeTable, Marks},
    search::{self, NoPage, Wanted},
    table_builder::{Span, TableBuilder},
};
use urscope_analyzer::{
    Judgement, Options,
    analysis::Analysis,
    lifetimes::LifetimeTracker,
    questions::{Holders, QuestionError, Stats, StatsCollector, Watch},
};

/// About how many bytes of a trace there are to a call: it is two records, and a guess too low costs little.
const BYTES_OF_A_CALL: u64 = 500;

/// How many searches are kept: somebody turns pages, or sorts to and fro.
const SEARCHES: usize = 8;

/// A run as it was heard.
pub struct Model {
    judgement: Judgement,
    stats: Stats,
    holders: Holders,
    tables: TableBuilder,
    marks: Marks,
    limits: Vec<String>,
    searches: Mutex<Vec<Search>>,
}

/// What was looked for, and the rows that were found.
type Search = (Wanted, Arc<[u32]>);

impl Model {
    /// Hears a run, once for everything.
    pub fn analyze(paths: &[PathBuf], options: &Options) -> Result<Self, QuestionError> {
        let tables = TableBuilder::for_about(about_how_many_calls(paths));
        let mut observers = (LifetimeTracker::new((StatsCollector::new(), tables)), Watch::default());
        let mut analysis = Analysis::run(paths, options, &mut observers)?;
        let (tracker, watch) = observers;
        let (collector, mut tables) = tracker.into_sink();
        tables.close();
        let (judgement, stats, holders) = (analysis.judgement(), collector.stats(), watch.holders(&mut analysis));
        let marks = Marks::new(&judgement.findings, &tables.roll);
        let limits = [tables.calls.limit(), tables.lives.limit()].into_iter().flatten().collect();
        Ok(Self { judgement, stats, holders, tables, marks, limits, searches: Mutex::default() })
    }

    /// What `urscope check` says.
    pub fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    /// What `urscope stats` says.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What `urscope holders` says.
    pub fn holders(&self) -> &Holders {
        &self.holders
    }

    /// What of it is not kept here, in words.
    pub fn limits(&self) -> &[String] {
        &self.limits
    }

    /// When each process of the judgement was there.
    pub(super) fn spans(&self) -> &[Span] {
        &self.tables.spans
    }

    pub(super) fn calls(&self) -> &CallTable {
        &self.tables.calls
    }

    pub(super) fn lives(&self) -> &LifetimeTable {
        &self.tables.lives
    }

    /// A part of the lives.
    pub(super) fn part(&self, generation: u64, asked: lifetimes::Asked) -> lifetimes::Part<'_> {
        self.tables.lives.part(generation, asked, &self.marks)
    }

    /// A page of the calls.
    pub(super) fn page(&self, generation: u64, asked: search::Asked) -> Result<search::Page, NoPage> {
        let (asked, around) = asked.settle()?;
        let found = self.find(&asked.rows)?;
        asked.page(generation, &self.tables.calls, &found, around)
    }

    fn find(&self, wanted: &Wanted) -> Result<Arc<[u32]>, NoPage> {
        let searches = || self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |searches: &Vec<Search>| Some(Arc::clone(&searches.iter().find(|(known, _)| known == wanted)?.1));
        if let Some(found) = known(&searches()) {
            return Ok(found);
        }
        let found: Arc<[u32]> = wanted.find(self.tables.calls.rows(), &self.judgement.processes)?.into();
        let mut searches = searches();
        if searches.len() >= SEARCHES {
            searches.remove(0);
        }
        searches.push((wanted.clone(), Arc::clone(&found)));
        Ok(found)
    }
}

fn about_how_many_calls(paths: &[PathBuf]) -> usize {
    let files = urscope_analyzer::analysis::traces(paths).unwrap_or_default();
    let sizes = files.iter().filter_map(|file| fs::metadata(file).ok()).map(|metadata| metadata.len());
    (sizes.sum::<u64>() / BYTES_OF_A_CALL) as usize
}
