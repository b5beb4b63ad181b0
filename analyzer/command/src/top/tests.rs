//! Compares whole screens with approved ones, and tests all sizes and arbitrary keys.

use std::{fmt::Write as _, fs, sync::Arc};

use proptest::prelude::*;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{Terminal, backend::TestBackend};
use urscope_analyzer::{Options, plain::is_unprintable};

use super::dashboard::{Dashboard, Pane};
use super::draw::Painter;
use super::worker::{self, Update};

/// Traces of two real runs: handles, openings and events of all kinds, and one handle that is put twice.
const RUNS: [&[u8]; 2] = [
    include_bytes!("../../../../fuzz/seeds/judge/clean_physical"),
    include_bytes!("../../../../fuzz/seeds/judge/double_put"),
];

fn update(files: &[&[u8]]) -> Update {
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
    assert!(files.is_empty() || dashboard.take(update(files)));
    dashboard
}

/// The traces of both runs, one entry for each file.
fn runs() -> Vec<&'static [u8]> {
    RUNS.iter().flat_map(|run| run.split(|byte| *byte == 0x1e)).collect()
}

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
fn the_screens_match_the_approved_ones() {
    let mut screens = String::new();
    let mut show = |what: &str, dashboard: &Dashboard, size: (u16, u16)| {
        writeln!(screens, "== {what}, {}x{}\n{}", size.0, size.1, screen(dashboard, size)).unwrap();
    };
    show("nothing yet", &dashboard(&[]), (60, 6));
    let mut dashboard = dashboard(&cut());
    show("all panes", &dashboard, (80, 24));
    show("all panes", &dashboard, (160, 50));
    show("all panes", &dashboard, (50, 14));
    for pane in Pane::ALL {
        show("one pane", &dashboard, (40, 10));
        assert_eq!(dashboard.pane, pane);
        press(&mut dashboard, "\t");
    }
    press(&mut dashboard, "1s?");
    show("the keys", &dashboard, (80, 24));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/top/screens.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(file, &screens).unwrap();
    }
    assert_eq!(screens, fs::read_to_string(file).unwrap_or_default(), "run with BLESS=1 to update it");
}

#[test]
fn enter_shows_a_finding_and_escape_closes_it_before_it_quits() {
    let mut dashboard = dashboard(&runs());
    assert!(press(&mut dashboard, "1\n"));
    let shown = screen(&dashboard, (100, 30));
    assert!(shown.contains("error: double-put") && shown.contains("= help"), "{shown}");
    assert!(press(&mut dashboard, "\x1b"));
    assert!(!screen(&dashboard, (100, 30)).contains("= help"));
    assert!(!press(&mut dashboard, "\x1b"));
    assert!(!dashboard.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
}

#[test]
fn rates_are_computed_from_the_last_two_snapshots() {
    let mut dashboard = dashboard(&cut());
    assert_eq!(dashboard.rates(), None);
    let (before, last) = dashboard.snapshot.as_ref().map(|snapshot| (snapshot.calls().0, snapshot.last_ns)).unwrap();
    assert!(dashboard.take(update(&runs())));
    let (after, now) = dashboard.snapshot.as_ref().map(|snapshot| (snapshot.calls().0, snapshot.last_ns)).unwrap();
    let rate = (after - before) as f64 * 1e9 / (now - last) as f64;
    let shown: f64 = dashboard.rates().unwrap()[0].parse().unwrap();
    assert!((shown - rate).abs() <= 0.5 && rate > 1.0, "{shown} and {rate}");
    assert!(dashboard.take(Update::Quiet) && !dashboard.take(Update::Quiet));
    assert_eq!(dashboard.rates().unwrap(), ["0.0", "0"]);
}

#[test]
fn a_failed_analysis_keeps_the_screen_and_shows_the_error() {
    let mut dashboard = dashboard(&runs());
    assert!(dashboard.take(Update::Failed("the disk is gone".into())));
    let shown = screen(&dashboard, (80, 24));
    assert!(shown.contains("the disk is gone") && shown.contains("put the same handle data twice"), "{shown}");
    assert!(dashboard.take(update(&runs())));
    assert!(!screen(&dashboard, (80, 24)).contains("the disk"));
}

#[test]
fn text_of_a_trace_cannot_control_the_terminal() {
    let text = String::from_utf8(RUNS[1].to_vec()).unwrap();
    let evil = text.replace("/opt/app/double_put", "/opt/app/\\u001b[2J\\u202e\\n\\u0007");
    assert_ne!(evil, text);
    let mut dashboard = dashboard(&[evil.as_bytes()]);
    for pane in ["1", "2", "3", "4"] {
        for keys in [pane, "\n"] {
            press(&mut dashboard, keys);
            let shown = screen(&dashboard, (80, 24));
            assert!(!shown.contains(|c| is_unprintable(c) && c != '\n'), "{shown:?}");
        }
        press(&mut dashboard, "\x1b1");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_keys_at_any_size_can_be_drawn(keys in "[\n\tv^$jkgGsp?1-4]{0,40}", width in 1..120_u16, height in 1..40_u16) {
        thread_local!(static DASHBOARD: std::cell::RefCell<Dashboard> = std::cell::RefCell::new(dashboard(&cut())));
        DASHBOARD.with_borrow_mut(|dashboard| {
            for key in keys.chars() {
                assert!(press(dashboard, &key.to_string()));
                screen(dashboard, (width, height));
            }
        });
    }
}
