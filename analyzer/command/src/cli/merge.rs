//! `urscope merge`: the reports of many nodes become one judgement.

use std::{
    error::Error,
    io::{self, BufWriter},
    path::Path,
    process::ExitCode,
};

use flate2::{Compression, write::GzEncoder};
use urscope_analyzer::{Judgement, Options, Report, Verdict};

use super::{
    MergeArguments, Outputs, VerdictArguments, complain, exemptions,
    outputs::{Sheet, named_here},
    show, wants_color,
};

/// Merges, reports to standard output, and says the verdict by the exit code.
pub(crate) fn merge(arguments: &MergeArguments) -> ExitCode {
    let code = merged(arguments).unwrap_or_else(|error| {
        complain(error);
        Verdict::NotJudged.exit_code()
    });
    code.into()
}

fn merged(arguments: &MergeArguments) -> Result<u8, Box<dyn Error>> {
    let exemptions = exemptions(&arguments.verdict)?;
    let mut report = Report::default();
    for path in &arguments.reports {
        report = report.merge(Report::read(path)?);
    }
    let outputs = Outputs::open(&arguments.verdict)?;
    write_report(&report, arguments.report.as_deref())?;
    let options = Options { fail_on: arguments.verdict.fail_on.into(), exemptions, ..Options::default() };
    tell(&report.judgement(&arguments.reports, &options), &arguments.verdict, outputs)
}

/// Writes a report file, if one is asked for.
pub(super) fn write_report(report: &Report, path: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let Some(path) = path else { return Ok(()) };
    let path = named_here(path);
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    Ok(Sheet::open(&path)?.fill(|out| {
        if !packed {
            return report.write(out);
        }
        let mut out = BufWriter::new(GzEncoder::new(out, Compression::default()));
        report.write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.finish().map(drop)
    })?)
}

/// Writes a judgement to wherever it is asked for, and answers its exit code.
pub(super) fn tell(
    judgement: &Judgement,
    arguments: &VerdictArguments,
    outputs: Outputs,
) -> Result<u8, Box<dyn Error>> {
    outputs.write(judgement)?;
    let out = io::stdout();
    let color = wants_color(&out);
    match show(judgement, arguments.format, &mut BufWriter::new(out.lock()), color) {
        // Whoever reads only the start (`urscope check … | head`) has what they want.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("the report cannot be written to standard output: {error}").into())
        }
        _ => Ok(judgement.verdict.exit_code()),
    }
}
