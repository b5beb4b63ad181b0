//! The results of one analysis of a run: what the command would print, and tables of calls and lifetimes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

use super::calls::{MOST_CALLS, Row};
use super::lifetimes::{self, MOST_LIVES, Marks};
use super::search::{self, Wanted};
use super::{answers::Refusal, table_builder::TableBuilder};
use urscope_analyzer::analysis::{CallSites, Excerpt, Following};
use urscope_analyzer::questions::{Holders, HoldersCollector, QuestionError, Stats, StatsCollector};
use urscope_analyzer::sources::{NoSource, Sources};
use urscope_analyzer::{Judgement, Options, lifetimes::LifetimeTracker};

/// How many results of searches are cached, because the user turns pages or changes the order back and forth.
const SEARCHES: usize = 8;

/// A place in a finding.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct OfFinding {
    /// Its position in the judgement.
    pub(super) finding: usize,
    /// Whether it is the other side, as 0 or 1.
    #[serde(default)]
    pub(super) there: u8,
    /// The position of the frame in the stack; absent for the call site.
    pub(super) frame: Option<usize>,
}

/// The results of one analysis.
pub struct Model {
    /// The result of `urscope check`.
    pub judgement: Judgement,
    /// The result of `urscope stats`.
    pub stats: Stats,
    /// The result of `urscope holders`.
    pub holders: Holders,
    /// Messages about calls and lifetimes that are not kept here.
    pub limits: Vec<String>,
    pub(super) tables: TableBuilder,
    marks: Marks,
    searches: Mutex<Vec<Search>>,
    /// Shared with later results, which know the same processes and more.
    sites: Arc<Mutex<CallSites>>,
}

/// A search, and the indices of the rows that it found.
type Search = (Wanted, Arc<[u32]>);

/// The observers of a run for the page.
type Observers = (LifetimeTracker<(StatsCollector, TableBuilder)>, HoldersCollector);

/// Follows a run for the page.
pub struct Follow {
    following: Following<Observers>,
    /// How often the analysis had started when the call sites were begun.
    starts: u64,
    sites: Arc<Mutex<CallSites>>,
}

impl Default for Follow {
    fn default() -> Self {
        Self::keeping(MOST_CALLS, MOST_LIVES)
    }
}

impl Follow {
    /// Keeps at most that many calls and lifetimes.
    pub(super) fn keeping(calls: usize, lives: usize) -> Self {
        let following = Following::new(move || {
            let tables = TableBuilder::new(calls, lives);
            (LifetimeTracker::new((StatsCollector::new(), tables)), HoldersCollector::default())
        });
        Self { following, starts: 0, sites: Arc::new(Mutex::new(CallSites::new(&Options::default()))) }
    }

    /// Takes in what is new in the traces, and returns the current results.
    pub fn model(&mut self, paths: &[PathBuf], options: &Options) -> Result<Model, QuestionError> {
        self.following.take_in(paths, options)?;
        let (mut analysis, (tracker, watch)) = self.following.snapshot(paths, options)?;
        let (collector, tables) = tracker.into_sink();
        let stats = collector.stats().with_roles(&mut analysis);
        let judgement = analysis.judgement();
        let holders = watch.holders(&mut analysis);
        let marks = Marks::new(&judgement.findings, &tables.process_index);
        if self.starts != self.following.starts() {
            // The processes may have other numbers now.
            (self.starts, self.sites) = (self.following.starts(), Arc::new(Mutex::new(CallSites::new(options))));
        }
        let sites = Arc::clone(&self.sites);
        {
            let mut sites = sites.lock().unwrap_or_else(PoisonError::into_inner);
            let known = sites.processes();
            tables.stacks.iter().skip(known).for_each(|stacks| sites.add(stacks));
            sites.agree_with(&mut analysis);
        }
        let limits = [tables.calls.limit(), tables.lives.limit()].into_iter().flatten().collect();
        Ok(Model { judgement, stats, holders, tables, marks, limits, searches: Mutex::default(), sites })
    }
}

impl Model {
    /// Analyzes a run once, without following it.
    pub fn analyze(paths: &[PathBuf], options: &Options) -> Result<Self, QuestionError> {
        Follow::default().model(paths, options)
    }

    /// The tables of traces for a judgement of them that was made before. Keeps at most that many calls and lifetimes.
    pub(super) fn with_judgement(
        judgement: Judgement,
        paths: &[PathBuf],
        options: &Options,
        calls: usize,
        lives: usize,
    ) -> Result<Self, QuestionError> {
        let model = Follow::keeping(calls, lives).model(paths, options)?;
        let marks = Marks::new(&judgement.findings, &model.tables.process_index);
        Ok(Self { judgement, marks, ..model })
    }

    /// How many calls are kept.
    pub(super) fn calls(&self) -> usize {
        self.tables.calls.rows.len()
    }

    pub(super) fn part(&self, generation: u64, asked: lifetimes::Asked) -> lifetimes::Part<'_> {
        self.tables.lives.part(generation, asked, &self.marks, &mut self.sites())
    }

    /// The lines of source around a frame of a side of the finding at this position, or around its call site.
    pub(super) fn excerpt(&self, sources: &Sources, asked: OfFinding) -> Result<Excerpt, NoSource> {
        let found = self.judgement.findings.get(asked.finding).ok_or(NoSource::Unknown)?;
        let side = if asked.there != 0 { found.other.as_ref() } else { Some(&found.process) };
        let side = side.ok_or(NoSource::Unknown)?;
        let frame = asked.frame.map_or_else(|| side.call_site(), |at| side.stack.get(at)).ok_or(NoSource::Unknown)?;
        let process = self.tables.process_index.number(side);
        sources.around(frame, process.and_then(|process| self.judgement.processes.get(process as usize)))
    }

    pub(super) fn page(&self, generation: u64, asked: search::Asked) -> Result<search::Page, Refusal> {
        let (asked, around) = asked.settle()?;
        let found = self.find(&asked.rows)?;
        let mut sites = self.sites();
        let site = |row: &Row| Some(sites.get(row.process, row.stack())?.name.clone());
        asked.page(generation, &self.tables.calls, &found, around, site)
    }

    fn sites(&self) -> MutexGuard<'_, CallSites> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, wanted: &Wanted) -> Result<Arc<[u32]>, Refusal> {
        let searches = || self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |searches: &Vec<Search>| Some(Arc::clone(&searches.iter().find(|(known, _)| known == wanted)?.1));
        if let Some(found) = known(&searches()) {
            return Ok(found);
        }
        let found: Arc<[u32]> = {
            let mut sites = self.sites();
            let site = |row: &Row| sites.get(row.process, row.stack());
            wanted.find(&self.tables.calls.rows, &self.judgement.processes, site)?.into()
        };
        let mut searches = searches();
        if searches.len() >= SEARCHES {
            searches.remove(0);
        }
        searches.push((wanted.clone(), Arc::clone(&found)));
        Ok(found)
    }
}
