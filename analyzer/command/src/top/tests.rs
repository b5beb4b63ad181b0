//! The screen, letter by letter, in all sizes, after any keys.

use std::{fmt::Write as _, fs, sync::Arc};

use proptest::prelude::*;
use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
};
use urscope_analyzer::{Options, plain::steers};

use super::{
    dashboard::{Dashboard, Pane},
    draw::Painter,
    worker::{self, Update},
};

/// Traces of two real runs: handles, openings and events of all kinds, and one handle that is put twice.
const RUNS: [&[u8]; 2] = [
    include_bytes!("../../../../fuzz/seeds/judge/clean_physical"),
    include_bytes!("../../../../fuzz/seeds/judge/double_put"),
];

fn updates(files: &[&[u8]]) -> Update {
    let folder = tempfile::tempdir().unwrap();
    for (number, bytes) in files.iter().enumerate() {
        fs::write(folder.path().join(format!("urscope-a-{number}-1.json")), bytes).unwrap();
    }
    worker::analyze(
        &mut urscope_analyzer::questions::SnapshotFollower::default(),
        &[folder.path().to_owned()],
        &Options::default(),
    )
}

fn dashboard(files: &[&[u8]]) -> Dashboard {
    let mut dashboard = Dashboard::new("traces/app-1", "traces/app-1 does not exist yet".into(), Arc::default());
    assert!(files.is_empty() || dashboard.take(updates(files)));
    dashboard
}

/// The runs, file by file.
fn runs() -> Vec<&'static [u8]> {
    RUNS.iter().flat_map(|run| run.split(|byte| *byte == 0x1e)).collect()
}

/// A run that stopped in the middle of what it did.
fn cut() -> Vec<&'static [u8]> {
    runs().into_iter().map(|file| &file[..file.len() * 5 / 6]).collect()
}

fn screen(dashboard: &Dashboard, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| Painter { color: true }.draw(dashboard, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(usize::from(width)).map(|line| {
        let text: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
        format!("{}\n", text.trim_end())
    });
    lines.collect()
}

fn press(dashboard: &mut Dashboard, keys: &str) -> bool {
    keys.chars().all(|key| {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\x1b' => KeyCode::Esc,
            'v' => KeyCode::Down,
            '^' => KeyCode::PageUp,
            '$' => KeyCode::End,
            other => KeyCode::Char(other),
        };
        dashboard.press(KeyEvent::new(code, KeyModifiers::NONE))
    })
}

#[test]
fn the_screens_are_as_they_were_approved() {
    let mut told = String::new();
    let mut show = |what: &str, dashboard: &Dashboard, size: (u16, u16)| {
        writeln!(told, "== {what}, {}x{}\n{}", size.0, size.1, screen(dashboard, size)).unwrap();
    };
    show("nothing yet", &dashboard(&[]), (60, 6));
    let mut dashboard = dashboard(&cut());
    show("all panes", &dashboard, (80, 24));
    show("all panes", &dashboard, (130, 30));
    for pane in Pane::ALL {
        show("one pane", &dashboard, (40, 10));
        assert_eq!(dashboard.pane, pane);
        press(&mut dashboard, "\t");
    }
    press(&mut dashboard, "3s?");
    show("the keys", &dashboard, (80, 24));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/top/screens.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(file, &told).unwrap();
    }
    assert_eq!(told, fs::read_to_string(file).unwrap_or_default(), "BLESS=1 renews it");
}

#[test]
fn enter_shows_a_finding_whole_and_escape_closes_it_before_it_ends() {
    let mut dashboard = dashboard(&runs());
    assert!(press(&mut dashboard, "3\n"));
    let shown = screen(&dashboard, (100, 30));
    assert!(shown.contains("error: double-put") && shown.contains("help"), "{shown}");
    assert!(press(&mut dashboard, "\x1b"));
    assert!(!screen(&dashboard, (100, 30)).contains("help  "));
    assert!(!press(&mut dashboard, "\x1b"));
    assert!(!dashboard.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
}

#[test]
fn calls_in_a_second_are_those_between_two_hearings() {
    let mut dashboard = dashboard(&cut());
    assert_eq!(dashboard.rates(), None);
    let (before, last) = dashboard.snapshot.as_ref().map(|snapshot| (snapshot.calls().0, snapshot.last_ns)).unwrap();
    assert!(dashboard.take(updates(&runs())));
    let (after, now) = dashboard.snapshot.as_ref().map(|snapshot| (snapshot.calls().0, snapshot.last_ns)).unwrap();
    let rate = (after - before) as f64 * 1e9 / (now - last) as f64;
    let told: f64 = dashboard.rates().unwrap()[0].parse().unwrap();
    assert!((told - rate).abs() <= 0.5 && rate > 1.0, "{told} and {rate}");
    assert!(dashboard.take(Update::Quiet) && !dashboard.take(Update::Quiet));
    assert_eq!(dashboard.rates().unwrap(), ["0.0", "0"]);
}

#[test]
fn a_run_that_cannot_be_heard_any_more_stays_and_says_why() {
    let mut dashboard = dashboard(&runs());
    assert!(dashboard.take(Update::Failed("the disk is gone".into())));
    let shown = screen(&dashboard, (80, 24));
    assert!(shown.contains("the disk is gone") && shown.contains("double-put"), "{shown}");
    assert!(dashboard.take(updates(&runs())));
    assert!(!screen(&dashboard, (80, 24)).contains("the disk"));
}

#[test]
fn nothing_of_a_trace_steers_the_screen() {
    let text = String::from_utf8(RUNS[1].to_vec()).unwrap();
    let evil = text.replace("/opt/app/double_put", "/opt/app/\\u001b[2J\\u202e\\n\\u0007");
    assert_ne!(evil, text);
    let mut dashboard = dashboard(&[evil.as_bytes()]);
    for pane in ["1", "2", "3", "4"] {
        for keys in [pane, "\n"] {
            press(&mut dashboard, keys);
            let shown = screen(&dashboard, (80, 24));
            assert!(!shown.contains(|c| steers(c) && c != '\n'), "{shown:?}");
        }
        press(&mut dashboard, "\x1b1");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_key_and_no_size_is_too_much(keys in "[\n\tv^$jkgGsp?1-4]{0,40}", width in 1..120_u16, height in 1..40_u16) {
        thread_local!(static DESK: std::cell::RefCell<Dashboard> = std::cell::RefCell::new(dashboard(&cut())));
        DESK.with_borrow_mut(|dashboard| {
            for key in keys.chars() {
                assert!(press(dashboard, &key.to_string()));
                screen(dashboard, (width, height));
            }
        });
    }
}
