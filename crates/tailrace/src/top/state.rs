//! What is shown: the answers of the agent, the open view, and how far it is scrolled. Keys change it, and so do answers.

use std::cell::Cell;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::Value;

use super::answer::list;
use super::rates::{History, Samples};
use crate::admin_client::{REASONS_PATH, SOURCES_PATH};

const SOURCES: usize = 200;
const LOG_LINES: usize = 200;
const PAGE_ROWS: usize = 10;

/// A view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Overview,
    Sources,
    Outputs,
    Ledger,
    Problems,
    Log,
    Query,
}

impl Tab {
    /// In the order of their number keys.
    pub(super) const ALL: [Tab; 7] = [
        Tab::Overview,
        Tab::Sources,
        Tab::Outputs,
        Tab::Ledger,
        Tab::Problems,
        Tab::Log,
        Tab::Query,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Tab::Overview => "overview",
            Tab::Sources => "sources",
            Tab::Outputs => "outputs",
            Tab::Ledger => "ledger",
            Tab::Problems => "problems",
            Tab::Log => "log",
            Tab::Query => "query",
        }
    }
}

/// Why the numbers are of before.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) since_unix_s: f64,
    pub(super) text: String,
}

/// What the agent said, or that it says nothing.
#[derive(Debug)]
pub(super) enum News {
    Overview(Value),
    History(Value),
    /// A report, and the path that was asked for it.
    Report(String, Value),
    Unreachable(String),
    /// A signal asks for the end.
    End,
}

/// Everything that is shown.
#[derive(Debug)]
pub(super) struct State {
    pub(super) tab: Tab,
    pub(super) samples: Samples,
    pub(super) history: History,
    pub(super) trouble: Option<Trouble>,
    selected: usize,
    report: (String, Value),
    by: usize,
    sort: usize,
    scroll: Cell<usize>,
}

const GROUPS: [&str; 3] = ["file", "namespace", "pod"];
const SORTS: [&str; 2] = ["lag", "bytes"];

impl State {
    pub(super) fn new() -> Self {
        Self {
            tab: Tab::Overview,
            samples: Samples::default(),
            history: History::default(),
            trouble: None,
            selected: 0,
            report: (String::new(), Value::Null),
            by: 0,
            sort: 0,
            scroll: Cell::new(0),
        }
    }

    /// The last overview; null before the first.
    pub(super) fn overview(&self) -> &Value {
        self.samples.last().unwrap_or(&Value::Null)
    }

    pub(super) fn pipelines(&self) -> &[Value] {
        list(&self.overview()["pipelines"])
    }

    /// The pipeline that is shown.
    pub(super) fn pipeline(&self) -> Option<&Value> {
        self.pipelines().get(self.position().0)
    }

    /// Which pipeline is shown, from 0, and how many there are.
    pub(super) fn position(&self) -> (usize, usize) {
        let all = self.pipelines().len();
        (self.selected.min(all.saturating_sub(1)), all)
    }

    /// The report of the open view; null until it is there.
    pub(super) fn report(&self) -> &Value {
        &self.report.1
    }

    /// How sources are grouped and sorted.
    pub(super) fn source_order(&self) -> (&'static str, &'static str) {
        (GROUPS[self.by], SORTS[self.sort])
    }

    /// The path of the report that the open view shows, if it shows one.
    pub(super) fn wanted(&self) -> Option<String> {
        let (by, sort) = self.source_order();
        match self.tab {
            Tab::Overview | Tab::Outputs | Tab::Ledger => None,
            Tab::Sources => Some(format!("{SOURCES_PATH}?by={by}&sort={sort}&n={SOURCES}")),
            Tab::Problems => Some(REASONS_PATH.to_owned()),
            Tab::Log => Some(format!("/api/v1/log?n={LOG_LINES}")),
            Tab::Query => {
                let name = self.pipeline()?["name"].as_str()?;
                let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
                Some(format!("/api/v1/explain?pipeline={name}"))
            }
        }
    }

    /// How many rows are scrolled away, of at most so many; a key never scrolls beyond that.
    pub(super) fn scrolled(&self, max: usize) -> usize {
        self.scroll.set(self.scroll.get().min(max));
        self.scroll.get()
    }

    /// Takes news; false if it is the end. `unix_s` is the time now.
    pub(super) fn learn(&mut self, news: News, at: std::time::Instant, unix_s: f64) -> bool {
        match news {
            News::Overview(overview) => {
                self.trouble = None;
                self.samples.push(at, overview);
            }
            News::History(history) => {
                let started = self.overview()["started_unix_s"].clone();
                self.history.merge(&history, &started);
            }
            News::Report(path, report) => {
                if self.wanted().as_ref() == Some(&path) {
                    self.report = (path, report);
                }
            }
            News::Unreachable(text) => {
                let since = self.trouble.as_ref().map(|trouble| trouble.since_unix_s);
                self.trouble = Some(Trouble {
                    since_unix_s: since.unwrap_or(unix_s),
                    text,
                });
            }
            News::End => return false,
        }
        true
    }

    /// Obeys a key; false if it is the end.
    pub(super) fn press(&mut self, key: KeyEvent) -> bool {
        if key.kind == KeyEventKind::Release {
            return true;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if is_control => return false,
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char(digit @ '1'..='7') => self.open(digit as usize - '1' as usize),
            KeyCode::Tab => self.open(self.tab as usize + 1),
            KeyCode::BackTab => self.open(self.tab as usize + Tab::ALL.len() - 1),
            KeyCode::Left | KeyCode::Char('h') => self.select(self.position().0.saturating_sub(1)),
            KeyCode::Right | KeyCode::Char('l') => self.select(self.position().0 + 1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll_to(|at| at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.scroll_to(|at| at + 1),
            KeyCode::PageUp => self.scroll_to(|at| at.saturating_sub(PAGE_ROWS)),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll_to(|at| at + PAGE_ROWS),
            KeyCode::Home => self.scroll_to(|_| 0),
            KeyCode::End => self.scroll_to(|_| usize::MAX - PAGE_ROWS),
            KeyCode::Char('s') if self.tab == Tab::Sources => {
                self.sort = (self.sort + 1) % SORTS.len();
                self.forget_report();
            }
            KeyCode::Char('g') if self.tab == Tab::Sources => {
                self.by = (self.by + 1) % GROUPS.len();
                self.forget_report();
            }
            _ => {}
        }
        true
    }

    fn open(&mut self, number: usize) {
        self.tab = Tab::ALL[number % Tab::ALL.len()];
        self.forget_report();
    }

    fn select(&mut self, number: usize) {
        let (before, all) = self.position();
        self.selected = number.min(all.saturating_sub(1));
        if self.selected != before {
            self.forget_report();
        }
    }

    /// Another view begins at its top, and shows nothing of the one before.
    fn forget_report(&mut self) {
        if self.wanted().as_ref() != Some(&self.report.0) {
            self.report = (String::new(), Value::Null);
        }
        self.scroll.set(0);
    }

    fn scroll_to(&self, change: impl Fn(usize) -> usize) {
        self.scroll.set(change(self.scroll.get()));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Instant;

    use serde_json::json;

    use super::*;

    fn state() -> State {
        let mut state = State::new();
        let overview =
            json!({"started_unix_s": 1, "pipelines": [{"name": "a"}, {"name": "b&n=1"}]});
        assert!(state.learn(News::Overview(overview), Instant::now(), 0.0));
        state
    }

    fn press(state: &mut State, code: KeyCode) -> bool {
        state.press(KeyEvent::from(code))
    }

    #[test]
    fn keys_choose_views_and_pipelines_within_what_there_is() {
        let mut state = state();
        for code in [KeyCode::Right, KeyCode::Right, KeyCode::Char('7')] {
            assert!(press(&mut state, code));
        }
        let path = state.wanted().unwrap();
        assert_eq!(path, "/api/v1/explain?pipeline=b%26n%3D1");
        press(&mut state, KeyCode::Tab);
        assert_eq!((state.tab, state.wanted()), (Tab::Overview, None));
        press(&mut state, KeyCode::BackTab);
        assert_eq!(state.tab, Tab::Query);
        for code in [KeyCode::Char('2'), KeyCode::Char('s'), KeyCode::Char('g')] {
            press(&mut state, code);
        }
        assert_eq!(state.source_order(), ("namespace", "bytes"));
        assert!(press(&mut state, KeyCode::Char('x')));
        assert!(!press(&mut state, KeyCode::Char('q')));
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(!state.press(control_c));
    }

    #[test]
    fn a_late_report_of_another_view_is_not_shown() {
        let mut state = state();
        let now = Instant::now();
        press(&mut state, KeyCode::Char('6'));
        let path = state.wanted().unwrap();
        assert!(state.learn(News::Report("/other".to_owned(), json!(1)), now, 0.0));
        assert!(state.report().is_null());
        state.learn(News::Report(path.clone(), json!(2)), now, 0.0);
        assert_eq!(*state.report(), json!(2));
        press(&mut state, KeyCode::Char('5'));
        state.learn(News::Report(path, json!(3)), now, 0.0);
        assert!(state.report().is_null());
    }

    #[test]
    fn scrolling_ends_with_the_rows() {
        let mut state = state();
        press(&mut state, KeyCode::End);
        press(&mut state, KeyCode::Down);
        assert_eq!(state.scrolled(5), 5);
        press(&mut state, KeyCode::Up);
        assert_eq!(state.scrolled(5), 4);
        press(&mut state, KeyCode::PageUp);
        assert_eq!(state.scrolled(5), 0);
    }

    #[test]
    fn an_agent_that_comes_back_is_no_trouble_any_more() {
        let mut state = state();
        let now = Instant::now();
        for (text, at) in [("refused", 7.0), ("timeout", 9.0)] {
            state.learn(News::Unreachable(text.to_owned()), now, at);
        }
        let trouble = state.trouble.as_ref().unwrap();
        assert_eq!(
            (trouble.since_unix_s, trouble.text.as_str()),
            (7.0, "timeout")
        );
        // One pipeline is gone: the other is shown.
        press(&mut state, KeyCode::Right);
        let overview = json!({"started_unix_s": 2, "pipelines": [{"name": "a"}]});
        state.learn(News::Overview(overview), now, 10.0);
        assert!(state.trouble.is_none());
        assert_eq!(state.pipeline().unwrap()["name"], "a");
        state.learn(News::Overview(json!(null)), now, 11.0);
        assert!(state.pipeline().is_none());
        assert!(!state.learn(News::End, now, 12.0));
    }
}
