//! The judge: traces in, a judgement out.
//!
//! `paths` finds the files, `source` and `cursor` read one of them `act` by act, `lanes` many of them at once, `court`
//! feeds all of them to the law in the order of time, `tally` counts what the law says, `verdict` says what was seen of each
//! `node`, and `fold` draws the line below all of them. `shelf` finds call stacks again, `symbols` names their frames, of which
//! `frames` chooses those that count, and `exempt` knows what does not count. A [`Listener`] hears it all as well. Nothing is
//! kept but what lives in the traced processes: the size of the traces does not matter.

mod act;
mod alive;
mod axis;
mod court;
mod cursor;
mod error;
pub mod exempt;
mod fold;
mod frames;
mod judgement;
mod lanes;
mod listener;
#[cfg(test)]
mod merging;
mod node;
mod paths;
mod progress;
mod schema;
mod shelf;
mod source;
mod symbols;
mod tally;
mod verdict;

use std::{path::PathBuf, sync::Arc};

use urscope_rules::{Place, Severity};

pub use alive::is_running;
pub use error::JudgeError;
pub use exempt::{ExemptionError, Exemptions};
pub use frames::file_name;
pub use judgement::{
    Compared, Ended, Excuse, FoundFinding, Frame, GoneFinding, Judgement, Seen, Side, SkippedLine, SuppressionUse,
    VERSION, Verdict,
};
pub use listener::Listener;
pub use node::{REPORT_VERSION, Report, ReportError};
pub use paths::traces;
pub use progress::Progress;
pub use schema::report_schema;

/// What the judge is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// From which severity on findings make the verdict [`Verdict::Findings`].
    pub fail_on: Severity,
    /// Where copies of programs and libraries are, for traces of another machine.
    pub symbols: Vec<PathBuf>,
    /// What does not count.
    pub exemptions: Exemptions,
    /// Where the judge says how far it has come.
    pub progress: Arc<Progress>,
}

impl Default for Options {
    fn default() -> Self {
        let (symbols, exemptions, progress) = (Vec::new(), Exemptions::default(), Arc::default());
        Self { fail_on: Severity::Warning, symbols, exemptions, progress }
    }
}

impl Options {
    /// The same for another hearing, whose progress is its own.
    #[must_use]
    pub fn for_another(&self) -> Self {
        Self { progress: Arc::default(), ..self.clone() }
    }
}

/// Judges traces: files, or directories with `urscope-*.json` files in them.
///
/// No traces at all, or traces without a call, are a judgement too: [`Verdict::NotJudged`], with the reason. A file that
/// cannot be taken for what it should be is an error, because a verdict over the rest could be wrong.
pub fn judge(paths: &[PathBuf], options: &Options) -> Result<Judgement, JudgeError> {
    Ok(hear(paths, options)?.judgement(paths, options))
}

/// Hears traces as [`fn@judge`] does, and leaves the verdict to whoever has the reports of all nodes.
pub fn hear(paths: &[PathBuf], options: &Options) -> Result<Report, JudgeError> {
    Ok(Hearing::hold(paths, options, &mut ())?.report())
}

/// A hearing that is over: what was said in it can be asked for.
pub struct Hearing<'a> {
    court: court::Court,
    sides: verdict::Sides<'a>,
    paths: &'a [PathBuf],
    options: &'a Options,
}

impl<'a> Hearing<'a> {
    /// Hears all records of traces, while somebody else listens. Errors are those of [`fn@judge`].
    pub fn hold(paths: &'a [PathBuf], options: &'a Options, listener: &mut dyn Listener) -> Result<Self, JudgeError> {
        let files = traces(paths)?;
        options.progress.expect(&files);
        let mut court = court::Court::default();
        court.summon(&files)?;
        court.hear(&options.progress, listener)?;
        let sides = verdict::Sides::new(&options.symbols);
        Ok(Self { court, sides, paths, options })
    }

    /// The judgement, to be asked for once: the findings are taken from the hearing.
    pub fn judgement(&mut self) -> Judgement {
        self.report().judgement(self.paths, self.options)
    }

    /// What was seen on each node, to be asked for once, as the judgement.
    pub fn report(&mut self) -> Report {
        verdict::report(&mut self.court, &mut self.sides)
    }

    /// A place as a report shows it, with its call stack. Its time counts from the beginning of the run.
    pub fn side(&mut self, place: Place) -> Side {
        let side = self.sides.side(&self.court, place);
        Side { time_ns: self.court.at(place.process, place.time), ..side }
    }
}
