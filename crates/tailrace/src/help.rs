//! The help of the command line: commands and options in groups, and the exit codes. Whatever width the terminal has, text is
//! wrapped to it.

use clap::builder::{StyledStr, Styles};
use clap::{Arg, Args as _, Command};

use crate::cli::{ConfigArgs, EXIT_CODES};
use crate::style;
use crate::variables::Wanted;

/// Lines are not longer than this on any terminal.
const WIDTH_MAX: usize = 100;

/// The commands by what they are for. One that is in no group is listed with the tools.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Run the agent", &["run", "replay", "queue"]),
    (
        "Write and check a config",
        &["init", "validate", "try", "test", "explain", "config"],
    ),
    (
        "Ask a running agent",
        &["ready", "ledger", "top", "tap", "support-bundle"],
    ),
    ("Tools", &[]),
];

/// Groups what the help of a command, and of all below it that are wanted, shows.
pub(crate) fn arrange(command: Command, wanted: Wanted<'_>) -> Command {
    let width = style::width().map_or(WIDTH_MAX, usize::from).min(WIDTH_MAX);
    arrange_for(command, width, wanted)
}

fn arrange_for(command: Command, width: usize, wanted: Wanted<'_>) -> Command {
    let template = template(&command, width);
    let config = ConfigArgs::augment_args(Command::new("config"));
    let of_config: Vec<&Arg> = config.get_arguments().collect();
    with_headings(command, &of_config, wanted)
        .help_template(template)
        .after_help(after_help())
}

/// Puts options under a heading: those of every command, those that choose the config, and those of the command alone.
fn with_headings(command: Command, of_config: &[&Arg], wanted: Wanted<'_>) -> Command {
    let with_heading = |arg: Arg| {
        let is_same = |other: &&&Arg| {
            let help = |arg: &Arg| arg.get_help().map(ToString::to_string);
            other.get_id() == arg.get_id() && help(other) == help(&arg)
        };
        let heading = if arg.is_global_set() {
            Some("Options of every command")
        } else if of_config.iter().any(|other| is_same(&other)) {
            Some("Config")
        } else {
            None
        };
        arg.help_heading(heading)
    };
    let command = command.mut_args(with_heading);
    command.mut_subcommands(|inner| match wanted(inner.get_name()) {
        true => with_headings(inner, of_config, wanted),
        false => inner,
    })
}

/// The top of the help: what the program is, and its commands.
fn template(command: &Command, width: usize) -> StyledStr {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    let shown = command
        .get_subcommands()
        .filter(|it| !it.is_hide_set() && it.get_name() != "help");
    let about = |inner: &Command| inner.get_about().map(ToString::to_string);
    let mut commands: Vec<(&str, String)> = shown
        .map(|inner| (inner.get_name(), about(inner).unwrap_or_default()))
        .collect();
    commands.push(("help", "Print the help of a command".to_owned()));
    let lengths = commands.iter().map(|(name, _)| name.len());
    let longest = lengths.max().unwrap_or(0);
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let indent = format!("\n{}", " ".repeat(longest + 4));
    for (title, names) in GROUPS {
        text.push_str(&format!("\n{header}{title}:{header:#}\n"));
        let find = |name: &&str| commands.iter().find(|(other, _)| other == name);
        let in_order = names.iter().filter_map(find);
        let is_rest = |(name, _): &&(&str, String)| names.is_empty() && !is_grouped(name);
        for (name, about) in in_order.chain(commands.iter().filter(is_rest)) {
            let about = wrapped(about, width.saturating_sub(longest + 4)).join(&indent);
            text.push_str(&format!(
                "  {literal}{name:<longest$}{literal:#}  {about}\n"
            ));
        }
    }
    text.push_str(&format!(
        "\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    ));
    text.into()
}

fn after_help() -> StyledStr {
    let styles = Styles::styled();
    let header = styles.get_header();
    let mut text = format!("{header}Exit codes:{header:#}\n");
    for (code, meaning) in EXIT_CODES {
        text.push_str(&format!("  {code:>3}  {meaning}\n"));
    }
    text.push_str("\nStart with `tailrace demo`: the whole pipeline on this machine.");
    text.into()
}

/// The words of a text on lines of such a width, where they fit.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::commands::Cli;

    const WIDTH: usize = 80;

    fn narrow(command: Command) -> Command {
        command.term_width(WIDTH).mut_subcommands(narrow)
    }

    fn check(command: &mut Command, seen: &mut usize) {
        *seen += 1;
        for help in [command.render_help(), command.render_long_help()] {
            let help = help.to_string();
            for line in help.lines() {
                assert!(line.chars().count() <= WIDTH, "{line:?} in {help}");
            }
        }
        command
            .get_subcommands_mut()
            .for_each(|inner| check(inner, seen));
    }

    #[test]
    fn every_help_fits_80_columns() {
        let command = crate::variables::add(Cli::command(), "TAILRACE", &|_| true);
        let mut command = narrow(arrange_for(command, WIDTH, &|_| true));
        command.build();
        let mut seen = 0;
        check(&mut command, &mut seen);
        assert!(seen > 15, "{seen}");
    }

    #[test]
    fn every_command_is_listed_once_and_options_stand_under_their_heading() {
        let mut command = arrange_for(Cli::command(), WIDTH, &|_| true);
        let help = command.render_help().to_string();
        for inner in command.get_subcommands() {
            let name = format!("  {} ", inner.get_name());
            let listed = help.lines().filter(|line| line.starts_with(&name));
            assert_eq!(listed.count(), 1, "{name} in {help}");
        }
        command.build();
        let validate = command
            .find_subcommand_mut("validate")
            .expect("it is a command");
        let help = validate.render_help().to_string();
        let at = |text: &str| {
            help.find(text)
                .unwrap_or_else(|| panic!("{text} in {help}"))
        };
        assert!(
            at("Options:") < at("--sample") && at("--sample") < at("Config:"),
            "{help}"
        );
        assert!(at("Config:") < at("--data-dir"), "{help}");
        assert!(at("Options of every command:") < at("--color"), "{help}");
    }

    #[test]
    fn words_are_wrapped_and_never_cut() {
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrapped("longer-than-that x", 4), ["longer-than-that", "x"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
