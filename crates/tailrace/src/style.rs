//! Colours and the width of what people read: the only module that decides on either.
//!
//! A command writes `style::bad("refused")` into a `Printer`. The text is redacted and escaped
//! first, and stands between marks; the printer turns the marks into colours where its stream shows colours, and leaves
//! them out elsewhere. The marks hold a number that is different in every process, and take no width in tables. So no text
//! from outside can forge one.
//!
//! Colours are shown if the first of these that applies says so: `--color`, `TAILRACE_COLOR`, `NO_COLOR`, `CLICOLOR_FORCE`,
//! `CLICOLOR`, `TERM=dumb`, and whether the stream is a terminal.

use std::fmt::{self, Display};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal};
use std::sync::{LazyLock, OnceLock};

use clap::builder::styling::{AnsiColor, Color, Style as Ansi};

use crate::printed;

/// The option, shared by all commands.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub struct Args {
    /// When to use colours
    ///
    /// `auto` uses them on a terminal, unless NO_COLOR or TERM=dumb is set.
    #[arg(long, value_name = "WHEN", env = "TAILRACE_COLOR", global = true)]
    #[arg(value_enum, default_value_t = Choice::Auto, hide_env_values = true)]
    pub color: Choice,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Choice {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A stream of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

static CHOICE: OnceLock<Choice> = OnceLock::new();

/// From now on this choice holds; the first one counts.
pub(crate) fn choose(choice: Choice) {
    let _ = CHOICE.set(choice);
}

/// What the help and the usage errors of clap use, which are shown before or instead of reading all arguments: the last
/// `--color` of the command line, else the environment.
pub(crate) fn of_command_line(args: impl Iterator<Item = String>) -> clap::ColorChoice {
    let mut words = args.take_while(|word| word != "--");
    let mut found = std::env::var("TAILRACE_COLOR").ok();
    while let Some(word) = words.next() {
        if word == "--color" {
            found = words.next().or(found);
        } else if let Some(value) = word.strip_prefix("--color=") {
            found = Some(value.to_owned());
        }
    }
    match found.as_deref() {
        Some("always") => clap::ColorChoice::Always,
        Some("never") => clap::ColorChoice::Never,
        _ => clap::ColorChoice::Auto,
    }
}

/// Whether the stream shows colours.
pub(crate) fn is_coloured(stream: Stream) -> bool {
    let is_terminal = match stream {
        Stream::Stdout => io::stdout().is_terminal(),
        Stream::Stderr => io::stderr().is_terminal(),
    };
    let env = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let choice = CHOICE.get().copied().unwrap_or_default();
    decide(choice, &env, is_terminal)
}

fn decide(choice: Choice, env: &dyn Fn(&str) -> Option<String>, is_terminal: bool) -> bool {
    let is_set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
    let is = |name: &str, value: &str| env(name).as_deref() == Some(value);
    match choice {
        Choice::Always => true,
        Choice::Never => false,
        Choice::Auto if is_set("NO_COLOR") => false,
        Choice::Auto if is_set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") => true,
        Choice::Auto => is_terminal && !is("CLICOLOR", "0") && !is("TERM", "dumb"),
    }
}

/// The columns that a line on standard output may have: `COLUMNS`, else those of the terminal. `None` for a file or a pipe.
pub(crate) fn width() -> Option<u16> {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|columns| columns.parse().ok());
    let terminal = || Some(rustix::termios::tcgetwinsize(io::stdout()).ok()?.ws_col);
    columns.or_else(terminal).filter(|&columns| columns > 0)
}

/// How a text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Good,
    Bad,
    Warn,
    Dim,
    Accent,
    Strong,
}

impl Look {
    const ALL: [Look; 6] = [
        Look::Good,
        Look::Bad,
        Look::Warn,
        Look::Dim,
        Look::Accent,
        Look::Strong,
    ];

    fn ansi(self) -> Ansi {
        let colour = |colour| Ansi::new().fg_color(Some(Color::Ansi(colour)));
        match self {
            Look::Good => colour(AnsiColor::Green),
            Look::Bad => colour(AnsiColor::Red).bold(),
            Look::Warn => colour(AnsiColor::Yellow).bold(),
            Look::Dim => Ansi::new().dimmed(),
            Look::Accent => colour(AnsiColor::Cyan),
            Look::Strong => Ansi::new().bold(),
        }
    }
}

/// A text with a look: redacted and escaped, between two marks. For a [`Printer`](crate::printed::Printer) only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Styled<T> {
    look: Look,
    text: T,
}

/// What went as it should.
pub(crate) fn good<T: Display>(text: T) -> Styled<T> {
    styled(Look::Good, text)
}

/// An error.
pub(crate) fn bad<T: Display>(text: T) -> Styled<T> {
    styled(Look::Bad, text)
}

/// A warning.
pub(crate) fn warn<T: Display>(text: T) -> Styled<T> {
    styled(Look::Warn, text)
}

/// What matters less than the rest.
pub(crate) fn dim<T: Display>(text: T) -> Styled<T> {
    styled(Look::Dim, text)
}

/// A name, a hint.
pub(crate) fn accent<T: Display>(text: T) -> Styled<T> {
    styled(Look::Accent, text)
}

/// A heading, a position.
pub(crate) fn strong<T: Display>(text: T) -> Styled<T> {
    styled(Look::Strong, text)
}

/// A text with a look.
pub(crate) fn styled<T: Display>(look: Look, text: T) -> Styled<T> {
    Styled { look, text }
}

impl<T: Display> Display for Styled<T> {
    /// Pads as a text does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text.to_string();
        // Lines and tabs are those of the caller, as in a printer.
        let pieces = text.split_inclusive(['\n', '\t']).map(|piece| {
            let end = piece.len() - usize::from(piece.ends_with(['\n', '\t']));
            printed::shown(&piece[..end]) + &piece[end..]
        });
        f.write_str(&mark(Some(self.look)))?;
        f.pad(&pieces.collect::<String>())?;
        f.write_str(&mark(None))
    }
}

/// Tag characters have no width, and [`printed::shown`] escapes them in any text from outside.
const TAGS: std::ops::Range<u32> = 0xe0020..0xe007f;
/// How many of them begin a mark: as many as 50 bits.
const MARK_CHARS: u32 = 8;

static MARK: LazyLock<String> = LazyLock::new(|| {
    let mut random = RandomState::new().hash_one("mark");
    let digits = (0..MARK_CHARS).map(|_| {
        let digit = random % u64::from(TAGS.end - TAGS.start);
        random /= u64::from(TAGS.end - TAGS.start);
        tag(u32::try_from(digit).unwrap_or(0))
    });
    digits.collect()
});

fn tag(number: u32) -> char {
    char::from_u32(TAGS.start + number).unwrap_or('\u{e0020}')
}

/// What begins a look, or ends it.
fn mark(look: Option<Look>) -> String {
    let number = look.and_then(|look| Look::ALL.iter().position(|&other| other == look));
    let number = number.map_or(0, |at| at + 1);
    let mut mark = MARK.clone();
    mark.push(tag(u32::try_from(number).unwrap_or(0)));
    mark
}

/// A text with marks in pieces: each with the escape sequence to write before it, which is empty without colours.
pub(crate) fn pieces(text: &str, is_coloured: bool) -> Vec<(String, &str)> {
    let mut parts = text.split(MARK.as_str());
    let first = parts.next().unwrap_or_default();
    let mut pieces = vec![(String::new(), first)];
    for part in parts {
        let mut chars = part.chars();
        let number = chars.next().map_or(0, u32::from).wrapping_sub(TAGS.start);
        let look = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
        let look = look.and_then(|at| Look::ALL.get(at));
        let sequence = match look {
            _ if !is_coloured => String::new(),
            Some(look) => look.ansi().render().to_string(),
            None => clap::builder::styling::Reset.render().to_string(),
        };
        pieces.push((sequence, chars.as_str()));
    }
    pieces
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use super::*;
    use crate::printed::Printer;

    #[test]
    fn the_first_that_applies_decides() {
        use Choice::{Always, Auto, Never};
        type Variables = &'static [(&'static str, &'static str)];
        let cases: [(Choice, Variables, bool, bool); 12] = [
            (Auto, &[], true, true),
            (Auto, &[], false, false),
            (Auto, &[("NO_COLOR", "1")], true, false),
            (Auto, &[("NO_COLOR", "")], true, true),
            (
                Auto,
                &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")],
                true,
                false,
            ),
            (
                Auto,
                &[("CLICOLOR_FORCE", "1"), ("TERM", "dumb")],
                false,
                true,
            ),
            (Auto, &[("CLICOLOR_FORCE", "0")], false, false),
            (Auto, &[("CLICOLOR", "0")], true, false),
            (Auto, &[("TERM", "dumb")], true, false),
            (Auto, &[("TERM", "xterm")], true, true),
            (Always, &[("NO_COLOR", "1")], false, true),
            (Never, &[("CLICOLOR_FORCE", "1")], true, false),
        ];
        for (choice, variables, is_terminal, expected) in cases {
            let env = |name: &str| {
                let found = variables.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(
                decide(choice, &env, is_terminal),
                expected,
                "{choice:?} {variables:?}"
            );
        }
    }

    fn printed(is_coloured: bool, text: &dyn Display) -> String {
        let mut bytes = Vec::new();
        write!(Printer::coloured(&mut bytes, is_coloured), "{text}").unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_text_is_escaped_first_and_styled_after() {
        let text = bad("a\u{1b}[2J\u{e0021}\tb\n");
        assert_eq!(printed(false, &text), "a\\u{1b}[2J\\u{e0021}\tb\n");
        assert_eq!(
            printed(true, &text),
            "\u{1b}[1m\u{1b}[31ma\\u{1b}[2J\\u{e0021}\tb\n\u{1b}[0m"
        );
        assert_eq!(printed(false, &format_args!("{:>4}|", good(7))), "   7|");
    }

    #[test]
    fn no_text_from_outside_forges_a_mark() {
        // What is written without `shown`, and so is escaped by the printer alone.
        for text in ["\u{e0021}\u{e0022}", "\u{1b}[31m", "\u{e0020}"] {
            let printed = printed(true, &text);
            assert!(!printed.contains(tailrace_config::is_unsafe), "{printed:?}");
        }
        // What was marked before, and is shown once more.
        let again = printed::shown(&bad("x").to_string());
        assert!(!printed(true, &again).contains('\u{1b}'));
    }

    #[test]
    fn a_styled_cell_is_as_wide_as_its_text() {
        let table = |cell: String| {
            let mut table = comfy_table::Table::new();
            table.add_row([cell, "x".to_owned()]);
            table.to_string()
        };
        let styled = table(bad("text").to_string());
        assert_eq!(printed(false, &styled), table("text".to_owned()));
    }

    #[test]
    fn the_help_obeys_the_last_choice_of_the_command_line() {
        let of = |words: &[&str]| of_command_line(words.iter().map(|&word| word.to_owned()));
        use clap::ColorChoice::{Always, Auto, Never};
        assert_eq!(of(&["run", "--color", "always"]), Always);
        assert_eq!(of(&["--color=always", "run", "--color=never"]), Never);
        assert_eq!(of(&["run", "--color"]), Auto);
        assert_eq!(of(&["run", "--", "--color=never"]), Auto);
    }
}
