//! The results of one analysis of a run: what the command would print, and tables of calls and lifetimes.

use std::{
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
    analysis::Following,
    lifetimes::LifetimeTracker,
    questions::{Holders, HoldersCollector, QuestionError, Stats, StatsCollector},
};

/// How many results of searches are cached, because the user turns pages or changes the order back and forth.
const SEARCHES: usize = 8;

/// The results of one analysis.
pub struct Model {
    judgement: Judgement,
    stats: Stats,
    holders: Holders,
    tables: TableBuilder,
    marks: Marks,
    limits: Vec<String>,
    searches: Mutex<Vec<Search>>,
}

/// A search, and the indices of the rows that it found.
type Search = (Wanted, Arc<[u32]>);

/// The observers of a run for the page.
type Observers = (LifetimeTracker<(StatsCollector, TableBuilder)>, HoldersCollector);

/// Follows a run for the page.
pub struct Follow(Following<Observers>);

impl Default for Follow {
    fn default() -> Self {
        Self(Following::new(|| {
            (LifetimeTracker::new((StatsCollector::new(), TableBuilder::default())), HoldersCollector::default())
        }))
    }
}

impl Follow {
    /// Takes in what is new in the traces, and returns the current results.
    pub fn model(&mut self, paths: &[PathBuf], options: &Options) -> Result<Model, QuestionError> {
        self.0.take_in(paths, options)?;
        let (mut analysis, (tracker, watch)) = self.0.snapshot(paths, options)?;
        let (collector, tables) = tracker.into_sink();
        let (judgement, stats, holders) = (analysis.judgement(), collector.stats(), watch.holders(&mut analysis));
        let marks = Marks::new(&judgement.findings, &tables.process_index);
        let limits = [tables.calls.limit(), tables.lives.limit()].into_iter().flatten().collect();
        Ok(Model { judgement, stats, holders, tables, marks, limits, searches: Mutex::default() })
    }
}

impl Model {
    /// Analyzes a run once, without following it.
    pub fn analyze(paths: &[PathBuf], options: &Options) -> Result<Self, QuestionError> {
        Follow::default().model(paths, options)
    }

    /// The result of `urscope check`.
    pub fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    /// The result of `urscope stats`.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The result of `urscope holders`.
    pub fn holders(&self) -> &Holders {
        &self.holders
    }

    /// Messages about calls and lifetimes that are not kept here.
    pub fn limits(&self) -> &[String] {
        &self.limits
    }

    /// The time span of each process of the judgement, in the same order.
    pub(super) fn spans(&self) -> &[Span] {
        &self.tables.spans
    }

    pub(super) fn calls(&self) -> &CallTable {
        &self.tables.calls
    }

    pub(super) fn lives(&self) -> &LifetimeTable {
        &self.tables.lives
    }

    /// A part of the table of lifetimes.
    pub(super) fn part(&self, generation: u64, asked: lifetimes::Asked) -> lifetimes::Part<'_> {
        self.tables.lives.part(generation, asked, &self.marks)
    }

    /// A page of the table of calls.
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
