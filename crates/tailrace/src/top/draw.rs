//! Draws the state: header, tabs, one view, and a last line with keys or what is wrong. It knows no terminal, so that tests
//! draw into memory.

mod ledger;
mod outputs;
mod overview;
mod palette;
mod reports;
mod table;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::answer::{number, text};
use super::number::{clock, duration};
use super::state::{State, Tab};
pub(super) use palette::Palette;
use table::{NARROW, cut};

/// What a view shows: lines that stay, and lines that scroll.
struct Page {
    head: Vec<Line<'static>>,
    rows: Vec<Line<'static>>,
}

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, palette: &Palette) {
    let rows = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    let [header, tabs, body, footer] = Layout::vertical(rows).areas(frame.area());
    let width = usize::from(header.width);
    frame.render_widget(self::header(state, palette, width), header);
    frame.render_widget(self::tabs(state, palette, width), tabs);
    let page = page(state, palette, width);
    show(frame, state, page, body);
    frame.render_widget(self::footer(state, palette, width), footer);
}

/// The part of a view for which there is room.
fn show(frame: &mut Frame<'_>, state: &State, page: Page, area: Rect) {
    let head_rows = page.head.len().min(usize::from(area.height));
    let room = usize::from(area.height) - head_rows;
    let skipped = state.scrolled(page.rows.len().saturating_sub(room));
    let rows = page.rows.into_iter().skip(skipped).take(room);
    let lines: Vec<_> = page.head.into_iter().take(head_rows).chain(rows).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn page(state: &State, palette: &Palette, width: usize) -> Page {
    let one_line = |text: &'static str| Page {
        head: Vec::new(),
        rows: vec![Line::from(text).style(palette.dim)],
    };
    let Some(pipeline) = state.pipeline() else {
        return match state.tab {
            Tab::Log => reports::log(state.report(), palette, width),
            _ => one_line("This agent has no pipeline. Add one under `pipelines:` in its config."),
        };
    };
    let titled = |mut page: Page| {
        page.head
            .insert(0, overview::title(state, pipeline, palette, width));
        page
    };
    match state.tab {
        Tab::Overview => overview::page(state, pipeline, palette, width),
        Tab::Outputs => outputs::page(state, palette, width),
        Tab::Ledger => titled(ledger::page(pipeline, palette, width)),
        _ if state.report().is_null() => one_line("Waiting for the agent..."),
        Tab::Sources => reports::sources(state, state.report(), palette, width),
        Tab::Problems => reports::problems(state.report(), palette, width),
        Tab::Log => reports::log(state.report(), palette, width),
        Tab::Query => titled(reports::query(pipeline, state.report(), palette)),
    }
}

/// Which agent this is, and how it stands.
fn header(state: &State, palette: &Palette, width: usize) -> Line<'static> {
    let overview = state.overview();
    let phase = text(&overview["phase"]);
    let (mark, phase, style) = match (&state.trouble, phase.as_str()) {
        (Some(_), _) => ("■ ", "unreachable".to_owned(), palette.bad),
        (None, "running") => ("● ", phase, palette.good),
        (None, _) => ("▲ ", phase, palette.warn),
    };
    let host = cut(&text(&overview["hostname"]), width / 3);
    let mut spans = vec![
        Span::styled("tailrace ", palette.strong),
        Span::styled(format!("{host}  "), palette.dim),
        Span::styled(mark, style),
        Span::styled(phase, style),
    ];
    if !overview["config"]["error"].is_null() {
        spans.push(Span::styled("  config refused", palette.bad));
    }
    if !overview["safe_mode"].is_null() {
        spans.push(Span::styled("  safe mode", palette.warn));
    }
    let facts = format!(
        "  up {}  version {}",
        duration(number(&overview["uptime_s"]).floor()),
        text(&overview["version"]),
    );
    spans.push(Span::styled(facts, palette.dim));
    Line::from(spans)
}

fn tabs(state: &State, palette: &Palette, width: usize) -> Line<'static> {
    let mut spans = Vec::new();
    for (n, tab) in Tab::ALL.into_iter().enumerate() {
        let is_open = tab == state.tab;
        let title = match is_open || width >= NARROW {
            true => format!(" {} {} ", n + 1, tab.title()),
            false => format!(" {} ", n + 1),
        };
        let style = if is_open {
            palette.reversed
        } else {
            palette.dim
        };
        spans.push(Span::styled(title, style));
    }
    Line::from(spans)
}

/// What is wrong with the connection, else the keys.
fn footer(state: &State, palette: &Palette, width: usize) -> Line<'static> {
    if let Some(trouble) = &state.trouble {
        let text = format!(
            "unreachable since {}, retrying: {}",
            clock(trouble.since_unix_s),
            crate::printed::shown(&trouble.text)
        );
        return Line::from(Span::styled(cut(&text, width), palette.bad));
    }
    let mut keys = vec!["q quit", "1-7 view", "↑↓ scroll"];
    if state.position().1 > 1 {
        keys.push("←→ pipeline");
    }
    if state.tab == Tab::Sources {
        keys.extend(["s sort", "g group"]);
    }
    Line::from(Span::styled(cut(&keys.join("  "), width), palette.dim))
}

#[cfg(test)]
mod tests;
