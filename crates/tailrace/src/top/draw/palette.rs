//! The looks of texts. Without colours they are told apart by weight, and every state is also a word.

use ratatui::style::{Color, Modifier, Style};

/// The looks.
#[derive(Debug, Clone, Copy)]
pub(in crate::top) struct Palette {
    pub(super) plain: Style,
    pub(super) good: Style,
    pub(super) warn: Style,
    pub(super) bad: Style,
    pub(super) accent: Style,
    pub(super) dim: Style,
    pub(super) strong: Style,
    /// The open tab, and what must be seen.
    pub(super) reversed: Style,
}

impl Palette {
    pub(in crate::top) fn new(is_coloured: bool) -> Self {
        let plain = Style::new();
        let colour = |colour| if is_coloured { plain.fg(colour) } else { plain };
        Self {
            plain,
            good: colour(Color::Green),
            warn: colour(Color::Yellow).add_modifier(Modifier::BOLD),
            bad: colour(Color::Red).add_modifier(Modifier::BOLD),
            accent: colour(Color::Cyan),
            dim: plain.add_modifier(Modifier::DIM),
            strong: plain.add_modifier(Modifier::BOLD),
            reversed: plain.add_modifier(Modifier::REVERSED),
        }
    }

    /// The look of a state of an output.
    pub(super) fn of_state(&self, state: &str) -> Style {
        match state {
            "ok" => self.good,
            "idle" => self.dim,
            "holding" => self.bad,
            _ => self.warn,
        }
    }
}
