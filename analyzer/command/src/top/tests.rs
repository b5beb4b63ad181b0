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
    desk::{Desk, Pane},
    draw::Painter,
    watch::{self, News},
};

/// Traces of two real runs: handles, openings and events of all kinds, and one handle that is put twice.
const RUNS: [&[u8]; 2] = [
    include_bytes!("../../../../fuzz/seeds/judge/clean_physical"),
    include_bytes!("../../../../fuzz/seeds/judge/double_put"),
];

fn news(files: &[&[u8]]) -> News {
    let folder = tempfile::tempdir().unwrap();
    for (number, bytes) in files.iter().enumerate() {
        fs::write(folder.path().join(format!("urscope-a-{number}-1.json")), bytes).unwrap();
    }
    watch::hear(&[folder.path().to_owned()], &Options::default())
}

fn desk(files: &[&[u8]]) -> Desk {
    let mut desk = Desk::new("traces/app-1", "traces/app-1 does not exist yet".into(), Arc::default());
    assert!(files.is_empty() || desk.take(news(files)));
    desk
}

/// The runs, file by file.
fn runs() -> Vec<&'static [u8]> {
    RUNS.iter().flat_map(|run| run.split(|byte| *byte == 0x1e)).collect()
}

/// A run that stopped in the middle of what it did.
fn cut() -> Vec<&'static [u8]> {
    runs().into_iter().map(|file| &file[..file.len() * 5 / 6]).collect()
}

fn screen(desk: &Desk, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| Painter { color: true }.draw(desk, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(usize::from(width)).map(|line| {
        let text: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
        format!("{}\n", text.trim_end())
    });
    lines.collect()
}

fn press(desk: &mut Desk, keys: &str) -> bool {
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
        desk.press(KeyEvent::new(code, KeyModifiers::NONE))
    })
}

#[test]
fn the_screens_are_as_they_were_approved() {
    let mut told = String::new();
    let mut show = |what: &str, desk: &Desk, size: (u16, u16)| {
        writeln!(told, "== {what}, {}x{}\n{}", size.0, size.1, screen(desk, size)).unwrap();
    };
    show("nothing yet", &desk(&[]), (60, 6));
    let mut desk = desk(&cut());
    show("all panes", &desk, (80, 24));
    show("all panes", &desk, (130, 30));
    for pane in Pane::ALL {
        show("one pane", &desk, (40, 10));
        assert_eq!(desk.pane, pane);
        press(&mut desk, "\t");
    }
    press(&mut desk, "3s?");
    show("the keys", &desk, (80, 24));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/top/screens.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(file, &told).unwrap();
    }
    assert_eq!(told, fs::read_to_string(file).unwrap_or_default(), "BLESS=1 renews it");
}

#[test]
fn enter_shows_a_finding_whole_and_escape_closes_it_before_it_ends() {
    let mut desk = desk(&runs());
    assert!(press(&mut desk, "3\n"));
    let shown = screen(&desk, (100, 30));
    assert!(shown.contains("error: double-put") && shown.contains("help"), "{shown}");
    assert!(press(&mut desk, "\x1b"));
    assert!(!screen(&desk, (100, 30)).contains("help  "));
    assert!(!press(&mut desk, "\x1b"));
    assert!(!desk.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
}

#[test]
fn calls_in_a_second_are_those_between_two_hearings() {
    let mut desk = desk(&cut());
    assert_eq!(desk.rates(), None);
    let (before, last) = desk.standing.as_ref().map(|standing| (standing.calls().0, standing.last_ns)).unwrap();
    assert!(desk.take(news(&runs())));
    let (after, now) = desk.standing.as_ref().map(|standing| (standing.calls().0, standing.last_ns)).unwrap();
    let rate = (after - before) as f64 * 1e9 / (now - last) as f64;
    let told: f64 = desk.rates().unwrap()[0].parse().unwrap();
    assert!((told - rate).abs() <= 0.5 && rate > 1.0, "{told} and {rate}");
    assert!(desk.take(News::Quiet) && !desk.take(News::Quiet));
    assert_eq!(desk.rates().unwrap(), ["0.0", "0"]);
}

#[test]
fn a_run_that_cannot_be_heard_any_more_stays_and_says_why() {
    let mut desk = desk(&runs());
    assert!(desk.take(News::Failed("the disk is gone".into())));
    let shown = screen(&desk, (80, 24));
    assert!(shown.contains("the disk is gone") && shown.contains("double-put"), "{shown}");
    assert!(desk.take(news(&runs())));
    assert!(!screen(&desk, (80, 24)).contains("the disk"));
}

#[test]
fn nothing_of_a_trace_steers_the_screen() {
    let text = String::from_utf8(RUNS[1].to_vec()).unwrap();
    let evil = text.replace("/opt/app/double_put", "/opt/app/\\u001b[2J\\u202e\\n\\u0007");
    assert_ne!(evil, text);
    let mut desk = desk(&[evil.as_bytes()]);
    for pane in ["1", "2", "3", "4"] {
        for keys in [pane, "\n"] {
            press(&mut desk, keys);
            let shown = screen(&desk, (80, 24));
            assert!(!shown.contains(|c| steers(c) && c != '\n'), "{shown:?}");
        }
        press(&mut desk, "\x1b1");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_key_and_no_size_is_too_much(keys in "[\n\tv^$jkgGsp?1-4]{0,40}", width in 1..120_u16, height in 1..40_u16) {
        thread_local!(static DESK: std::cell::RefCell<Desk> = std::cell::RefCell::new(desk(&cut())));
        DESK.with_borrow_mut(|desk| {
            for key in keys.chars() {
                assert!(press(desk, &key.to_string()));
                screen(desk, (width, height));
            }
        });
    }
}
