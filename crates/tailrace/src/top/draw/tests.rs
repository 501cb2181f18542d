//! Draws into memory, at two sizes, with hostile texts and with answers that are no agent's.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use serde_json::{Value, json};

use super::*;
use crate::top::state::News;

/// A name that would clear a terminal, turn the direction of the text and run a script.
const HOSTILE: &str = "<script>\u{1b}[2J\u{202e}\u{9b}x\r\n日本";

fn output(name: &str, state: &str, n: u64) -> Value {
    let error =
        json!({"unix_s": 1_767_323_000, "text": format!("the server answered 503: {HOSTILE}")});
    json!({
        "name": name, "type": "otlp", "endpoint": "http://collector:4318", "state": state,
        "last_error": if state == "ok" { Value::Null } else { error },
        "retry_in_s": if state == "ok" { Value::Null } else { json!(11.2) },
        "delivered": 1000 * n, "in_flight_requests": 3, "requests": n, "sent_bytes": 21_000 * n, "encoded_bytes": 260_000 * n,
    })
}

/// An agent `n` seconds after its start.
fn overview(n: u64) -> Value {
    let records = 10_000 * n;
    let of_output = |name: &str| {
        json!({"output": name, "delivered_records": 1000 * n, "rejected_records": 42, "dead_lettered_records": 0,
               "dropped_records": 0, "earlier_records": 0, "in_flight_records": 1200, "detached": false})
    };
    let pipeline = |name: &str| {
        json!({
            "name": name, "query": format!("SELECT *\nFROM logs -- {HOSTILE}"), "inputs": [{"name": "file", "type": "file"}],
            "queue": {"size_bytes": 63 << 20, "capacity_bytes": 64 << 20},
            "stages": {"read_bytes": 2_330_000 * n, "unread_bytes": 1_500_000, "oldest_unread_s": 4, "records": records,
                       "malformed": 7 * n, "filtered": 9000 * n, "failed_rows": 7, "files_open": 37},
            "ledger": {"read_bytes": 2_330_000 * n, "unread_bytes": 1_500_000, "in_flight_bytes": 63 << 20,
                       "lost_bytes": {"deleted": 5123}, "lost_files": {}, "skipped_bytes": {"older_than": 8_123_123},
                       "truncated_unread": {"truncations": 2, "bytes_max": 77}, "records": records, "malformed_records": 7 * n,
                       "truncated_records": 0, "replayed_records": 0, "filtered_records": 9000 * n,
                       "outputs": [of_output("collector"), of_output(HOSTILE)]},
            "outputs": [output("collector", "ok", n), output(HOSTILE, "holding", n)],
        })
    };
    json!({
        "version": "0.1.0", "started_unix_s": 1_767_323_000, "uptime_s": n as f64 + 0.5, "hostname": HOSTILE, "phase": "running",
        "safe_mode": "the last 3 starts ended soon", "config": {"error": null}, "pipelines": [pipeline("app"), pipeline(HOSTILE)],
    })
}

fn reports() -> [(char, Value); 4] {
    let path = format!(
        "/var/log/pods/{}/{HOSTILE}.log",
        "shop_checkout-7d9f8b6c5".repeat(20)
    );
    let source = json!({"name": path, "pipeline": "app", "files": 2, "size_bytes": 5, "read_bytes": 1_417_339_207,
                        "behind_bytes": 50_017_075, "oldest_unread_s": null});
    let reason = json!({"unix_s": 1_767_323_045, "pipeline": "app", "stage": "scan", "kind": "malformed", "subject": HOSTILE,
                        "reason": "no JSON: expected a value", "count": 12_345, "example": HOSTILE});
    let line = json!({"unix_ms": 1_767_323_045_678_u64, "level": "WARN", "message": format!("cannot open {HOSTILE}"),
                      "fields": {"path": HOSTILE, "count": 3}});
    [
        (
            '2',
            json!({"by": "file", "sort": "lag", "total": 5012, "sources": [source]}),
        ),
        ('5', json!({"reasons": [reason]})),
        ('6', json!({"lines": [line]})),
        (
            '7',
            json!({"pipeline": "app", "text": format!("columns:\n  level: Utf8\n  {HOSTILE}")}),
        ),
    ]
}

fn state() -> State {
    let mut state = State::new();
    let start = Instant::now();
    for n in 100..110 {
        let at = start + Duration::from_secs(n);
        state.learn(News::Overview(overview(n)), at, 0.0);
    }
    let points = (0..180_u64).map(|n| {
        json!({"unix_s": 1_767_323_000 + 5 * n, "cpu_seconds": n, "resident_bytes": 50_000_000 + n * 1000 * (n % 7), "pipelines": [
            {"name": "app", "read_bytes": 5_000_000 * n + n * n * 9000, "records": 40_000 * n, "delay_total_s": n as f64 * 0.4, "delay_batches": n},
        ]})
    });
    let history = json!({"points": points.collect::<Vec<_>>()});
    state.learn(News::History(history), start, 0.0);
    state
}

fn drawn(state: &State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let palette = Palette::new(true);
    terminal.draw(|frame| draw(frame, state, &palette)).unwrap();
    let text = terminal.backend().to_string();
    assert!(
        !text.contains(|c: char| c != '\n' && tailrace_config::is_unsafe(c)),
        "{text:?}"
    );
    text
}

fn press(state: &mut State, key: char) {
    assert!(state.press(KeyEvent::from(KeyCode::Char(key))));
}

#[test]
fn every_view_fits_a_terminal_and_a_corner_of_one() {
    for (width, height) in [(80, 24), (40, 10)] {
        let mut views = String::new();
        let mut state = state();
        for key in '1'..='7' {
            press(&mut state, key);
            if let Some((_, report)) = reports().into_iter().find(|(of, _)| *of == key) {
                let path = state.wanted().unwrap();
                state.learn(News::Report(path, report), Instant::now(), 0.0);
            }
            views += &drawn(&state, width, height);
        }
        insta::assert_snapshot!(format!("views_{width}x{height}"), views);
    }
}

#[test]
fn an_agent_that_is_away_is_named_on_the_last_line() {
    let mut state = state();
    let error = format!("connection refused {HOSTILE}");
    state.learn(News::Unreachable(error), Instant::now(), 1_767_323_045.0);
    let text = drawn(&state, 80, 24);
    assert!(
        text.contains("unreachable since 03:04:05Z, retrying: connection refused"),
        "{text}"
    );
    assert!(
        text.lines().next().unwrap().contains("■ unreachable"),
        "{text}"
    );
}

#[test]
fn colours_can_be_left_out() {
    let has_colours = |is_coloured: bool| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let (state, palette) = (state(), Palette::new(is_coloured));
        terminal
            .draw(|frame| draw(frame, &state, &palette))
            .unwrap();
        let cells = terminal.backend().buffer().content();
        cells
            .iter()
            .any(|cell| cell.fg != ratatui::style::Color::Reset)
    };
    assert!(has_colours(true));
    assert!(!has_colours(false));
}

#[test]
fn no_size_and_no_answer_makes_it_panic() {
    let mut nonsense = overview(3);
    nonsense["pipelines"][0]["stages"] = json!([1, "x"]);
    nonsense["pipelines"][0]["outputs"] = json!({"a": 1});
    nonsense["pipelines"][0]["ledger"] = json!("?");
    nonsense["pipelines"][0]["queue"] = json!({"size_bytes": -1e300, "capacity_bytes": 0});
    let huge = json!({"uptime_s": 1e300, "pipelines": [{"name": "x".repeat(100_000), "inputs": [{}], "outputs": [{"name": 1}],
                      "ledger": {"records": u64::MAX, "outputs": [{"delivered_records": u64::MAX}, {"in_flight_records": 1}]}}]});
    for answer in [
        nonsense,
        huge,
        json!(null),
        json!([]),
        json!({"pipelines": [null, 1]}),
        json!({"pipelines": []}),
    ] {
        let mut state = State::new();
        drawn(&state, 80, 24);
        state.learn(News::Overview(answer.clone()), Instant::now(), 0.0);
        state.learn(News::History(answer), Instant::now(), 0.0);
        for key in '1'..='7' {
            press(&mut state, key);
            if let Some(path) = state.wanted() {
                let report =
                    json!({"sources": [1], "reasons": [null], "lines": [{"fields": 1}], "text": 5});
                state.learn(News::Report(path, report), Instant::now(), 0.0);
            }
            for (width, height) in [(1, 1), (2, 3), (5, 4), (12, 4), (70, 2), (300, 100)] {
                drawn(&state, width, height);
            }
        }
    }
}
