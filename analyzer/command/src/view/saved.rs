//! Writes the page as one file: its modules, its answers, and the report without scripts, which is what browsers
//! without scripts show and what is printed.
//!
//! The modules are `data:` addresses of an import map. A file has no relative addresses, so their imports lose the
//! `./`. The answers are JSON in gzip in base64. `ui/saved.js` reads them, `ui/saved_page.js` shows the page.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::{fmt::Write as _, sync::Arc};

use data_encoding::BASE64;
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;
use serde_json::json;
use urscope_analyzer::questions::{HandleHistory, Holders, Stats, histories, word};
use urscope_analyzer::report::{self, Page};
use urscope_analyzer::sources::{NoSource, Sources};
use urscope_analyzer::{Judgement, analysis::Excerpt, explain};
use urscope_schema::api::Function;

use super::assets::{ASSETS, asset, ending};
use super::model::{Model, OfFinding};
use super::overview::{Overview, overview};
use super::search::{self, Asked};
use super::{Subject, answers::Refusal, lifetimes, state::Latest, tokens};

/// How many calls a file has.
const CALLS: usize = 4 * search::LONGEST_PAGE;

/// How many lifetimes a file has: as many as one part can have.
const LIVES: usize = lifetimes::LONGEST_PART;

/// How many findings have the sources of all frames, and the histories of their handles.
const DETAILED: usize = 100;

/// The modules that only the server's pages use.
const ONLY_SERVED: [&str; 1] = ["handover.js"];

/// All answers that the page asks for.
#[derive(Serialize)]
struct Answers<'a> {
    run: Overview<'a>,
    check: &'a Judgement,
    stats: &'a Stats,
    holders: &'a Holders,
    calls: Vec<search::Page>,
    /// The functions that share something.
    ipc: Vec<&'static str>,
    /// The part of the table of lifetimes with all, and the one after it, in base64.
    lives: Vec<String>,
    handles: Vec<HandleHistory>,
    rules: BTreeMap<&'a str, String>,
    excerpts: Vec<Source>,
    /// The excerpts of frames, by `FINDING.SIDE.FRAME`, as indices. That of a call site has no frame.
    sources: BTreeMap<String, usize>,
}

/// Lines of source, or why there are none.
#[derive(PartialEq, Serialize)]
#[serde(untagged)]
enum Source {
    Lines(Excerpt),
    None { none: String },
}

/// Writes a judgement and the tables of its traces. If the traces cannot be read again, writes the report alone.
pub(crate) fn write(
    judgement: &Judgement,
    subject: &Subject,
    sources: &Sources,
    mut out: &mut dyn Write,
) -> io::Result<()> {
    let Ok(answers) = answers(judgement, subject, sources) else { return report::html(judgement, &mut out) };
    let nonce = tokens::word()?;
    let head = head(&nonce);
    let body = body(&answers)?;
    report::html_with(Page { nonce: &nonce, head: &head, body: &body }, judgement, &mut out)
}

/// The answers as JSON in gzip.
fn answers(judgement: &Judgement, subject: &Subject, sources: &Sources) -> Result<Vec<u8>, Refusal> {
    let failed = |error: io::Error| Refusal::unavailable(error.to_string());
    let paths = (subject.paths)().map_err(failed)?;
    let model = Model::with_judgement(judgement.clone(), &paths, &subject.options, CALLS, LIVES);
    let model = Arc::new(model.map_err(|error| Refusal::from_error(&error))?);
    let now = Latest { generation: 1, running: judgement.is_running(), model: Some(Arc::clone(&model)), error: None };
    let pages = (0..CALLS).step_by(search::LONGEST_PAGE).take_while(|offset| *offset < model.calls());
    let lives = |offset| -> Result<String, Refusal> {
        let packed = model.part(1, lifetimes::Asked::part(offset)).packed();
        Ok(BASE64.encode(&packed.map_err(|error| failed(error.into()))?))
    };
    let detailed = judgement.findings.iter().take(DETAILED);
    let handles: BTreeSet<_> = detailed.filter_map(|found| word(found.fingerprint.as_deref()?).ok()).collect();
    let codes: BTreeSet<_> = judgement.findings.iter().map(|finding| finding.rule.as_str()).collect();
    let (excerpts, sources) = excerpts(&model, sources);
    let all = Answers {
        run: overview(subject, &now, None),
        check: judgement,
        stats: &model.stats,
        holders: &model.holders,
        calls: pages.map(|offset| model.page(1, Asked::part(offset))).collect::<Result<_, _>>()?,
        ipc: Function::ALL.iter().filter(|function| function.is_ipc()).map(|function| function.name()).collect(),
        lives: [0, LIVES].into_iter().map(lives).collect::<Result<_, _>>()?,
        handles: histories(&paths, &subject.options, handles).map_err(|error| Refusal::from_error(&error))?,
        rules: codes.into_iter().filter_map(|code| Some((code, explain::page(code).ok()?))).collect(),
        excerpts,
        sources,
    };
    let pack = || {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&report::compact(&all)?)?;
        packed.finish()
    };
    pack().map_err(failed)
}

/// The lines around all frames of the first findings, and where they belong.
fn excerpts(model: &Model, sources: &Sources) -> (Vec<Source>, BTreeMap<String, usize>) {
    let mut excerpts = Vec::new();
    let mut places = BTreeMap::new();
    for (finding, found) in model.judgement.findings.iter().enumerate().take(DETAILED) {
        for (there, side) in (0..).zip([Some(&found.process), found.other.as_ref()].into_iter().flatten()) {
            for frame in std::iter::once(None).chain((0..side.stack.len()).map(Some)) {
                let excerpt = model.excerpt(sources, OfFinding { finding, there, frame });
                if frame.is_some() && excerpt == Err(NoSource::Unknown) {
                    continue;
                }
                let excerpt = excerpt.map_or_else(|none| Source::None { none: none.to_string() }, Source::Lines);
                let known = excerpts.iter().position(|known| *known == excerpt).unwrap_or_else(|| {
                    excerpts.push(excerpt);
                    excerpts.len() - 1
                });
                let frame = frame.map_or_else(String::new, |frame| frame.to_string());
                places.insert(format!("{finding}.{there}.{frame}"), known);
            }
        }
    }
    (excerpts, places)
}

/// The style sheets, which `saved_page.js` lets take effect, and the modules.
fn head(nonce: &str) -> String {
    let mut head = String::new();
    let mut modules = BTreeMap::new();
    for (name, text) in ASSETS.iter().filter(|(name, _)| !ONLY_SERVED.contains(name)) {
        if ending(name) == "css" {
            let _ = write!(head, "<style class=\"page-style\" media=\"not all\">{text}</style>");
        } else if ending(name) == "js" {
            let text =
                text.replace("from './", "from '").replace("import('./", "import('").replace("import './", "import '");
            modules.insert(*name, format!("data:text/javascript;charset=utf-8,{}", in_address(&text)));
        }
    }
    let map = in_script(&json!({ "imports": modules }).to_string());
    let _ = write!(head, "<script type=\"importmap\" nonce=\"{nonce}\">{map}</script>");
    let _ = write!(head, "<script type=\"module\" nonce=\"{nonce}\">import 'saved_page.js';</script>");
    head
}

/// The body of the page, and the answers.
fn body(answers: &[u8]) -> io::Result<String> {
    let index = asset("index.html").map_or("", |(_, text)| *text);
    let between = |text: &'static str| text.split_once("<body>")?.1.split_once("<noscript>").map(|(body, _)| body);
    let body = between(index).ok_or(io::ErrorKind::InvalidData)?;
    let answers = BASE64.encode(answers);
    Ok(format!("<div id=\"page\" hidden>{body}</div><script type=\"text/plain\" id=\"answers\">{answers}</script>"))
}

/// A text as a part of a `data:` address.
fn in_address(text: &str) -> String {
    text.replace('%', "%25").replace('#', "%23").replace('\n', "%0A").replace('\t', "%09")
}

/// JSON as the content of a script: nothing in it can end the element.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_imports_by_the_names_of_the_map_and_ends_no_script() {
        let head = head("n");
        let imports: Vec<_> = head.match_indices("'./").map(|(at, _)| &head[at.saturating_sub(12)..at + 20]).collect();
        // Types in comments may stay.
        assert!(imports.iter().all(|text| text.contains("import('")), "{imports:?}");
        assert_eq!(head.matches("</script>").count(), 2);
        assert!(head.len() < 290_000, "{} bytes", head.len());
    }

    #[test]
    fn a_text_survives_as_an_address() {
        assert_eq!(in_address("a % b # c\n\td"), "a %25 b %23 c%0A%09d");
        assert_eq!(in_script(r#"{"a":"</script><!--"}"#), r#"{"a":"\u003c/script>\u003c!--"}"#);
    }
}
