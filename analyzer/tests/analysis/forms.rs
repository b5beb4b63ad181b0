//! The forms of a report for other programs: each is what its own standard says, for every story of every rule.

use std::path::Path;

use serde_json::{Value, json};
use uppsala::XsdValidator;
use urscope_analyzer::{Judgement, Options, analysis::Frame, report};
use urscope_rule_pages::Page;
use urscope_rules::catalog::RULES;

use crate::traces::{SINNERS, files, judged, judged_with};

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

/// Judgements of all kinds: of every story of every rule, of sinners with stacks, of nothing, and with exemptions.
pub(crate) fn judgements() -> Vec<Judgement> {
    let stories = RULES.iter().flat_map(|rule| {
        let page = Page::of(rule);
        ["Bad trace", "Good trace"].map(|heading| judged(&files(page.scenario(heading).unwrap())))
    });
    let mut all: Vec<_> = stories.collect();
    all.push(judged(&files("")));
    all.push(with_stacks());
    all.push(judged_with(&files(SINNERS), &exempting("leaked-*:*\ndouble-put:nobody", &with_stacks())));
    all
}

/// Sinners whose first finding has stacks on both sides.
pub(crate) fn with_stacks() -> Judgement {
    let mut judgement = judged(&files(SINNERS));
    let frame = |function: &str, file: Option<&str>, line| Frame {
        module: "/home/me/app/build/producer".into(),
        offset: "0x1a2b".into(),
        function: Some(function.into()),
        file: file.map(str::to_owned),
        line,
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
    let baseline = Some(Baseline::parse(Path::new("main.json"), &text).unwrap());
    Options { exemptions: Exemptions { suppressions, baseline }, ..Options::default() }
}

fn assert_valid(schema: &jsonschema::Validator, report: &Value) {
    let errors: Vec<_> =
        schema.iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{report:#}");
}

#[test]
fn sarif_is_valid_by_the_schema_of_oasis() {
    // The pattern of a language has a bracket too many and is no regular expression by the letter of ECMA 262.
    let text = include_str!("../data/sarif-schema-2.1.0.json").replace("{2}]?$", "{2}$");
    let schema = serde_json::from_str(&text).unwrap();
    let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    for judgement in judgements() {
        assert_valid(&schema, &sarif(&judgement));
    }
    let mut broken = sarif(&with_stacks());
    broken["runs"][0]["results"][0]["level"] = json!("fatal");
    assert!(!schema.is_valid(&broken), "the schema finds no fault");
}

#[test]
fn sarif_has_both_sides_with_their_lines_and_stacks() {
    let judgement = with_stacks();
    let log = sarif(&judgement);
    let run = &log["runs"][0];
    assert_eq!(run["originalUriBaseIds"]["SRCROOT"]["uri"], "file:///home/me/app/");
    assert_eq!(
        run["invocations"][0],
        json!({"executionSuccessful": true, "exitCode": 1, "toolExecutionNotifications": []})
    );
    let result = &run["results"][0];
    let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
    assert_eq!((&rule["id"], &result["ruleId"]), (&json!("freed-while-open"), &json!("freed-while-open")));
    assert!(rule["help"]["text"].as_str().unwrap().contains("# What to do"), "{rule:#}");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"], json!({"uri": "src/gpu%20core.cpp", "uriBaseId": "SRCROOT"}));
    assert_eq!(place["region"]["startLine"], 37);
    let other = &result["relatedLocations"][0];
    assert_eq!(other["message"]["text"], "consumer (pid 200), thread 200, call 1 urIPCOpenMemHandleExp");
    assert_eq!(other["logicalLocations"][0]["fullyQualifiedName"], "consumer");
    let stacks = result["stacks"].as_array().unwrap();
    assert_eq!(stacks.iter().map(|stack| stack["frames"].as_array().unwrap().len()).collect::<Vec<_>>(), [3, 1]);
    let abroad = &stacks[0]["frames"][1]["location"]["physicalLocation"];
    assert_eq!(abroad["artifactLocation"], json!({"uri": "file:///elsewhere/main.cpp"}));
    assert_eq!(abroad["address"]["relativeAddress"], 0x1a2b);
    assert_eq!(result["partialFingerprints"]["urscopeIdentity/v1"], judgement.findings[0].identity.as_str());

    let nothing = sarif(&judged(&files("")));
    let invocation = &nothing["runs"][0]["invocations"][0];
    assert_eq!((&invocation["executionSuccessful"], &invocation["exitCode"]), (&json!(false), &json!(2)));
    assert!(invocation["toolExecutionNotifications"][0]["message"]["text"].as_str().unwrap().contains("no trace"));
}

#[test]
fn sarif_says_what_is_excused_and_what_is_new() {
    let before = judged(&files("producer: get q -> i\nproducer: get q -> j"));
    let judgement = judged_with(&files(SINNERS), &exempting("leaked-mapping:consumer", &before));
    let log = sarif(&judgement);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let told: Vec<_> = results.iter().map(|it| (&it["ruleId"], &it["baselineState"], &it["suppressions"])).collect();
    let justified = json!([{"kind": "external", "justification": "known.txt:1: leaked-mapping:consumer"}]);
    let expected = [
        (&json!("freed-while-open"), &json!("new"), &json!([])),
        (&json!("leaked-handle"), &json!("unchanged"), &json!([])),
        (&json!("leaked-mapping"), &json!("new"), &justified),
    ];
    assert_eq!(told, expected);
}

#[test]
fn junit_is_valid_by_the_schema_of_jenkins() {
    let schema = uppsala::parse(include_str!("../data/junit-10.xsd")).unwrap();
    let schema = XsdValidator::from_schema(&schema).unwrap();
    let errors = |told: &str| schema.validate(&uppsala::parse(told).unwrap());
    for judgement in judgements() {
        let told = junit(&judgement);
        assert!(errors(&told).is_empty(), "{:?}\n{told}", errors(&told));
    }
    let told = junit(&with_stacks());
    for (good, bad) in [("<testcase name=", "<testcase nam="), ("failure ", "fault "), ("<property ", "<properties ")] {
        let broken =
            told.replace(good, bad).replace("</failure>", if bad == "fault " { "</fault>" } else { "</failure>" });
        assert_ne!(broken, told);
        assert!(!errors(&broken).is_empty(), "the schema finds no fault in {bad}");
    }
}

#[test]
fn junit_has_a_case_per_rule_and_process() {
    let told = junit(&judged(&files(SINNERS)));
    let cases = 1 + 2 * (RULES.len() - 1);
    assert_eq!(told.matches("<testcase ").count(), cases, "{told}");
    assert!(
        told.contains(&format!("<testsuites name=\"urscope\" tests=\"{cases}\" failures=\"2\" errors=\"0\"")),
        "{told}"
    );
    assert!(told.contains("<failure message=\"producer (pid 100) frees USM allocation"), "{told}");
    assert!(told.contains("<system-out>note: leaked-mapping"), "what is no failure is told all the same: {told}");

    let nothing = junit(&judged(&files("")));
    assert!(nothing.contains("tests=\"1\" failures=\"0\" errors=\"1\"") && nothing.contains("not-judged"), "{nothing}");

    let nobody = judged(&files(""));
    let excused = junit(&judged_with(&files(SINNERS), &exempting("freed-*:*", &nobody)));
    assert!(excused.contains("<skipped message=\"suppressed by known.txt:1 (freed-*:*)\""), "{excused}");
}

#[test]
fn github_is_told_of_each_finding_at_its_line() {
    let told = github(&with_stacks());
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), 4, "{told}");
    let head = "::error file=src/gpu core.cpp,line=37,title=urscope%3A freed-while-open::producer (pid 100) frees";
    assert!(lines[0].starts_with(head), "{told}");
    assert!(lines[0].contains("%0Athere: consumer (pid 200)") && lines[0].contains("%0Ahelp: "), "{told}");
    assert!(lines[1].starts_with("::warning title=urscope%3A leaked-handle::"), "{told}");
    assert!(lines[2].starts_with("::notice title="), "{told}");
    assert_eq!(lines[3], "urscope: 1 error, 1 warning, 1 note (2 processes, 8 calls)");
    let nothing = github(&judged(&files("")));
    assert!(nothing.starts_with("::error title=urscope%3A not judged::no trace files"), "{nothing}");
}

#[test]
fn the_page_tells_all_and_asks_nobody() {
    let page = html(&with_stacks());
    for told in [
        "freed-while-open",
        "app::free(void*) (/home/me/app/src/gpu core.cpp:37)",
        "there",
        "What to do",
        "whole stack",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    let lower = page.to_lowercase();
    for asks in ["<script", "src=", "href=", "url(", "@import", "http:", "https:", "<iframe", "<form"] {
        assert!(!lower.contains(asks), "{asks}: {page}");
    }
    assert!(
        page.contains("prefers-color-scheme: dark") && page.contains("default-src &#39;none&#39;")
            || page.contains("default-src 'none'")
    );
}

#[test]
fn a_report_in_json_is_valid_by_the_schema_that_is_promised() {
    let promised = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/report.schema.json");
    let schema = urscope_analyzer::analysis::report_schema();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(promised, &schema).unwrap();
    }
    let committed = std::fs::read_to_string(promised).unwrap();
    assert_eq!(
        committed, schema,
        "docs/report.schema.json is out of date; BLESS=1 cargo test -p urscope-analyzer renews it"
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
