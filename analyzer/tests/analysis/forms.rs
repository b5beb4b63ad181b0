//! Tests of the report formats for other programs: each conforms to its standard, for the scenarios of all rules.

use std::{collections::BTreeSet, path::Path};

use serde_json::{Value, json};
use uppsala::XsdValidator;
use urscope_analyzer::{Judgement, Options, analysis::Frame, report, sources::Sources};
use urscope_rule_pages::Page;
use urscope_rules::catalog::RULES;

use crate::traces::{FAULTY_RUN, files, files_with, judged, judged_with};

pub(crate) fn form(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

pub(crate) fn sarif(judgement: &Judgement) -> Value {
    serde_json::from_str(&form(|out| report::sarif(judgement, Path::new("/home/me/app"), out))).unwrap()
}

pub(crate) fn junit(judgement: &Judgement) -> String {
    form(|out| report::junit(judgement, out))
}

pub(crate) fn html(judgement: &Judgement) -> String {
    form(|out| report::html(judgement, out))
}

pub(crate) fn github(judgement: &Judgement) -> String {
    form(|out| report::github(judgement, Path::new("/home/me/app"), out))
}

/// The judgement in every form.
pub(crate) fn every_form(judgement: &Judgement) -> Vec<String> {
    let text = form(|out| report::text(judgement, out, false));
    let json = form(|out| report::json(judgement, out));
    let sarif = form(|out| report::sarif(judgement, Path::new("/"), out));
    vec![text, json, sarif, junit(judgement), html(judgement), github(judgement)]
}

/// Judgements of all kinds: of all scenarios of all rules, of no traces, of a faulty run with stacks, and with
/// exemptions.
pub(crate) fn judgements() -> Vec<Judgement> {
    let scenarios = RULES.iter().flat_map(|rule| {
        let page = Page::for_rule(rule);
        ["Bad trace", "Good trace"].map(|heading| judged(&files(page.scenario(heading).unwrap())))
    });
    let mut all: Vec<_> = scenarios.collect();
    all.push(judged(&files("")));
    all.push(with_stacks());
    all.push(judged_with(&files(FAULTY_RUN), &exempting("leaked-*:*\ndouble-put:nobody", &with_stacks())));
    all
}

/// The judgement of a faulty run whose first finding has stacks on both sides.
pub(crate) fn with_stacks() -> Judgement {
    let mut judgement = judged(&files(FAULTY_RUN));
    let frame = |function: &str, file: Option<&str>, line| Frame {
        module: "/home/me/app/build/producer".into(),
        offset: "0x1a2b".into(),
        function: Some(function.into()),
        file: file.map(str::to_owned),
        line,
        ..Frame::default()
    };
    let stack = vec![
        frame("app::free(void*)", Some("/home/me/app/src/gpu core.cpp"), Some(37)),
        frame("main", Some("/elsewhere/main.cpp"), Some(14)),
        Frame { module: "/usr/lib/libc.so.6".into(), offset: "0x29d90".into(), ..Frame::default() },
    ];
    let finding = &mut judgement.findings[0];
    finding.other.as_mut().unwrap().stack = vec![frame("consumer", None, None)];
    finding.process.stack = stack;
    judgement
}

/// Options with the exemptions of a suppressions file and a baseline.
pub(crate) fn exempting(suppressions: &str, before: &Judgement) -> Options {
    use urscope_analyzer::analysis::exemptions::{Baseline, Exemptions, Suppressions};
    let suppressions = Suppressions::parse(Path::new("known.txt"), suppressions).unwrap();
    let text = form(|out| report::json(before, out));
    let baseline = Some(Baseline::parse(Path::new("main.json"), text.as_bytes()).unwrap());
    Options {
        exemptions: Exemptions { suppressions, baseline },
        expected_signals: vec!["SIGKILL".into()],
        ..Options::default()
    }
}

fn assert_valid(schema: &jsonschema::Validator, report: &Value) {
    let errors: Vec<_> =
        schema.iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{report:#}");
}

#[test]
fn sarif_is_valid_against_the_oasis_schema() {
    // The pattern of a language has an extra bracket and is not a valid ECMA 262 regular expression.
    let text = include_str!("../data/sarif-schema-2.1.0.json").replace("{2}]?$", "{2}$");
    let schema = serde_json::from_str(&text).unwrap();
    let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    for judgement in judgements() {
        assert_valid(&schema, &sarif(&judgement));
    }
    let mut broken = sarif(&with_stacks());
    broken["runs"][0]["results"][0]["level"] = json!("fatal");
    assert!(!schema.is_valid(&broken), "the schema accepts an invalid level");
}

#[test]
fn sarif_has_both_sides_with_their_lines_and_stacks() {
    let judgement = with_stacks();
    let log = sarif(&judgement);
    let run = &log["runs"][0];
    assert_eq!(run["originalUriBaseIds"]["SRCROOT"]["uri"], "file:///home/me/app/");
    assert_eq!(
        run["invocations"][0],
        json!({"executionSuccessful": true, "exitCode": 1, "toolExecutionNotifications": [
            {"level": "warning", "message": {"text": "consumer (pid 200) was killed inside call 2 (urIPCOpenMemHandleExp)"}}
        ]})
    );
    let result = &run["results"][0];
    let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
    assert_eq!((&rule["id"], &result["ruleId"]), (&json!("freed-while-open"), &json!("freed-while-open")));
    assert!(rule["help"]["text"].as_str().unwrap().contains("# What to do"), "{rule:#}");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"], json!({"uri": "src/gpu%20core.cpp", "uriBaseId": "SRCROOT"}));
    assert_eq!(place["region"]["startLine"], 37);
    let other = &result["relatedLocations"][0];
    assert_eq!(other["message"]["text"], "consumer (pid 200), call 1 urIPCOpenMemHandleExp");
    assert_eq!(other["logicalLocations"][0]["fullyQualifiedName"], "consumer");
    let stacks = result["stacks"].as_array().unwrap();
    assert_eq!(stacks.iter().map(|stack| stack["frames"].as_array().unwrap().len()).collect::<Vec<_>>(), [3, 1]);
    let outside = &stacks[0]["frames"][1]["location"]["physicalLocation"];
    assert_eq!(outside["artifactLocation"], json!({"uri": "file:///elsewhere/main.cpp"}));
    assert_eq!(outside["address"]["relativeAddress"], 0x1a2b);
    assert_eq!(result["partialFingerprints"]["urscopeIdentity/v1"], judgement.findings[0].identity.as_str());

    let empty = sarif(&judged(&files("")));
    let invocation = &empty["runs"][0]["invocations"][0];
    assert_eq!((&invocation["executionSuccessful"], &invocation["exitCode"]), (&json!(false), &json!(2)));
    assert!(invocation["toolExecutionNotifications"][0]["message"]["text"].as_str().unwrap().contains("no trace"));
}

#[test]
fn sarif_marks_suppressed_and_new_findings() {
    let before = judged(&files("producer: get q -> i\nproducer: get q -> j"));
    let judgement = judged_with(&files(FAULTY_RUN), &exempting("leaked-mapping:consumer", &before));
    let log = sarif(&judgement);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let found: Vec<_> = results.iter().map(|it| (&it["ruleId"], &it["baselineState"], &it["suppressions"])).collect();
    let justified = json!([{"kind": "external", "justification": "known.txt:1: leaked-mapping:consumer"}]);
    let expected = [
        (&json!("freed-while-open"), &json!("new"), &json!([])),
        (&json!("leaked-handle"), &json!("unchanged"), &json!([])),
        (&json!("leaked-mapping"), &json!("new"), &justified),
    ];
    assert_eq!(found, expected);
}

#[test]
fn junit_is_valid_against_the_jenkins_schema() {
    let schema = uppsala::parse(include_str!("../data/junit-10.xsd")).unwrap();
    let schema = XsdValidator::from_schema(&schema).unwrap();
    let errors = |xml: &str| schema.validate(&uppsala::parse(xml).unwrap());
    for judgement in judgements() {
        let xml = junit(&judgement);
        assert!(errors(&xml).is_empty(), "{:?}\n{xml}", errors(&xml));
    }
    let xml = junit(&with_stacks());
    for (good, bad) in [("<testcase name=", "<testcase nam="), ("failure ", "fault "), ("<property ", "<properties ")] {
        let broken =
            xml.replace(good, bad).replace("</failure>", if bad == "fault " { "</fault>" } else { "</failure>" });
        assert_ne!(broken, xml);
        assert!(!errors(&broken).is_empty(), "the schema accepts {bad}");
    }
}

/// Which process of a program begins first differs between runs.
#[test]
fn the_names_of_junit_do_not_depend_on_the_order_of_processes() {
    let names = |scenario: &str, ranks: bool| {
        let judgement = judged(&files_with(scenario, |header, _| {
            (header.executable, header.rank) = ("/app/ring".into(), ranks.then(|| header.command[0].len() as u32));
        }));
        let xml = junit(&judgement);
        let named = |line: &str| Some(line.split_once("classname=\"")?.1.split('"').next()?.to_owned());
        let failed = xml.lines().zip(xml.lines().skip(1)).filter(|(_, next)| next.contains("<failure"));
        let all: BTreeSet<_> = xml.lines().filter_map(named).collect();
        (all, failed.filter_map(|(case, _)| named(case)).collect::<Vec<_>>())
    };
    let one = "a: get p -> h\na: put h\na: put h";
    let two = "bb: get q -> i\nbb: put i";
    for (ranks, failed) in [(true, "urscope.ring rank 6"), (false, "urscope.ring")] {
        let [first, second] =
            [format!("{one}\n{two}"), format!("{two}\n{one}")].map(|scenario| names(&scenario, ranks));
        assert_eq!(first, second);
        assert_eq!(first.1, [failed], "{first:?}");
    }
}

#[test]
fn junit_has_a_case_per_rule_and_for_each_process_where_it_found_something() {
    let xml = junit(&judged(&files(FAULTY_RUN)));
    let cases = 1 + RULES.len() - 1;
    assert_eq!(xml.matches("<testcase ").count(), cases, "{xml}");
    assert!(
        xml.contains(&format!("<testsuites name=\"urscope\" tests=\"{cases}\" failures=\"2\" errors=\"0\"")),
        "{xml}"
    );
    assert!(
        xml.contains("<failure message=\"producer (pid 100) freed 4 KiB while consumer (pid 200) had it open\""),
        "{xml}"
    );
    assert!(
        xml.contains("<system-out>note: leaked-mapping"),
        "a finding that is not a failure is in the output: {xml}"
    );

    let empty = judged(&files(""));
    let xml = junit(&empty);
    assert!(xml.contains("tests=\"1\" failures=\"0\" errors=\"1\"") && xml.contains("not-judged"), "{xml}");

    let excused = junit(&judged_with(&files(FAULTY_RUN), &exempting("freed-*:*", &empty)));
    assert!(excused.contains("<skipped message=\"suppressed by known.txt:1 (freed-*:*)\""), "{excused}");
}

#[test]
fn github_has_an_annotation_for_each_finding_at_its_line() {
    let output = github(&with_stacks());
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines.len(), 6, "{output}");
    assert!(lines[0].starts_with("urscope: producer (pid 100) freed 4 KiB while consumer (pid 200) had it open"));
    assert_eq!(lines[1], "urscope: 1 error, 1 warning, 1 note (2 processes, 8 calls)");
    let head = "::error file=src/gpu core.cpp,line=37,title=urscope%3A freed-while-open::producer (pid 100) freed";
    assert!(lines[2].starts_with(head), "{output}");
    assert!(lines[2].contains("%0Athere: consumer (pid 200)") && lines[2].contains("%0Ahelp: "), "{output}");
    assert!(lines[3].starts_with("::warning title=urscope%3A leaked-handle::"), "{output}");
    assert!(lines[4].starts_with("::notice title="), "{output}");
    assert!(lines[5].starts_with("::warning title=urscope%3A not seen::consumer (pid 200) was killed"), "{output}");
    let empty = github(&judged(&files("")));
    assert!(empty.contains("\n::error title=urscope%3A not judged::no trace files"), "{empty}");
}

#[test]
fn the_source_of_both_sides_is_shown_where_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let ring = folder.path().canonicalize().unwrap().join("ring.cpp");
    std::fs::write(&ring, "void exchange() {\n\tuse(p);\n\n    free(p);  // too early\n}\nint main() {}\n").unwrap();
    let mut judgement = judged(&files(FAULTY_RUN));
    let frame = |line| Frame {
        module: "/app".into(),
        function: Some("exchange()".into()),
        file: ring.to_str().map(Into::into),
        line: Some(line),
        program: true,
        ..Frame::default()
    };
    judgement.findings[0].process.stack = vec![frame(4)];
    judgement.findings[0].other.as_mut().unwrap().stack = vec![frame(2)];
    let elsewhere = Sources::default();
    let plain = judgement.clone();
    elsewhere.add_to(&mut judgement);
    assert_eq!(judgement, plain, "no source is shown that nobody asked for");
    Sources::new(None, &[folder.path().to_owned()]).add_to(&mut judgement);

    let text = form(|out| report::text(&judgement, out, false));
    let both = [
        "/ring.cpp:4",
        "2 |     use(p);",
        "  |     ------- opened here",
        "4 |     free(p);  // too early",
        "  |     ^^^^^^^^^^^^^^^^^^^^^^ freed here",
        "",
    ];
    assert!(text.contains(&both.join("\n")), "{text}");
    assert!(html(&judgement).contains("<span class=\"meant\"><span class=\"faint\">4</span>      free(p);"));
    let result = &sarif(&judgement)["runs"][0]["results"][0];
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["region"]["snippet"]["text"], "    free(p);  // too early");
    assert_eq!((&place["contextRegion"]["startLine"], &place["contextRegion"]["endLine"]), (&json!(2), &json!(6)));
    let steps = result["codeFlows"][0]["threadFlows"][0]["locations"].as_array().unwrap();
    let line = |step: &Value| step["location"]["physicalLocation"]["region"]["startLine"].as_u64();
    assert_eq!(steps.iter().map(line).collect::<Vec<_>>(), [Some(2), Some(4)], "the open comes before the free");
}

#[test]
fn the_page_is_complete_and_has_no_external_references() {
    let page = html(&with_stacks());
    for text in [
        "freed-while-open",
        "app::free(void*) (/home/me/app/src/gpu core.cpp:37)",
        "there",
        "What to do",
        "whole stack",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let lower = page.to_lowercase();
    for reference in ["<script", "src=", "href=", "url(", "@import", "http:", "https:", "<iframe", "<form"] {
        assert!(!lower.contains(reference), "{reference}: {page}");
    }
    assert!(
        page.contains("prefers-color-scheme: dark") && page.contains("default-src &#39;none&#39;")
            || page.contains("default-src 'none'")
    );
}

#[test]
fn a_json_report_is_valid_against_the_published_schema() {
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/report.schema.json");
    let schema = urscope_analyzer::analysis::report_schema();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(published, &schema).unwrap();
    }
    let committed = std::fs::read_to_string(published).unwrap();
    assert_eq!(
        committed, schema,
        "docs/report.schema.json is out of date; update it with BLESS=1 cargo test -p urscope-analyzer"
    );
    let schema =
        jsonschema::options().should_validate_formats(true).build(&serde_json::from_str(&schema).unwrap()).unwrap();
    for judgement in judgements() {
        let report = serde_json::from_str(&form(|out| report::json(&judgement, out))).unwrap();
        assert_valid(&schema, &report);
    }
    let mut broken = serde_json::to_value(with_stacks()).unwrap();
    broken["findings"][0]["severity"] = json!("fatal");
    assert!(!schema.is_valid(&broken));
    broken = serde_json::to_value(with_stacks()).unwrap();
    broken.as_object_mut().unwrap().remove("verdict");
    assert!(!schema.is_valid(&broken));
}
