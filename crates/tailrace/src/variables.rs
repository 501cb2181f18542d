//! The environment variable of each flag. A flag that several commands share names its variable where it is declared; all
//! others get one here, by rule: `--lines` of `tailrace generate` is `TAILRACE_GENERATE_LINES`. Help shows the name of a
//! variable and never its value.

use std::ffi::OsString;

use clap::builder::{BoolishValueParser, Resettable};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// Which commands a command line needs, by their names.
pub(crate) type Wanted<'w> = &'w dyn Fn(&str) -> bool;

/// Flags that exclude each other. The variable of one gives way to the other flag.
const EXCLUSIVE: [&str; 2] = ["input", "config"];

/// Reads the words of a command line, which `command` makes.
///
/// # Errors
///
/// What is wrong with them, or the help.
pub(crate) fn matches(
    command: impl Fn() -> Command,
    words: &[OsString],
) -> Result<ArgMatches, clap::Error> {
    let conflict = match command().try_get_matches_from(words) {
        Err(error) if error.kind() == ErrorKind::ArgumentConflict => error,
        other => return other,
    };
    let mut others = EXCLUSIVE
        .iter()
        .map(|id| without(command(), id).try_get_matches_from(words));
    others.find_map(Result::ok).ok_or(conflict)
}

/// The command without the variable of a flag.
fn without(command: Command, id: &str) -> Command {
    let command = command.mut_args(|arg| match arg.get_id() == id {
        true => arg.env(Resettable::Reset),
        false => arg,
    });
    command.mut_subcommands(|inner| without(inner, id))
}

/// The command with a variable for each flag of it and of the commands below it that are wanted. An empty variable counts as
/// unset.
pub(crate) fn add(command: Command, prefix: &str, wanted: Wanted<'_>) -> Command {
    let command = command.mut_args(|arg| with_variable(arg, prefix));
    command.mut_subcommands(|inner| match wanted(inner.get_name()) {
        true => {
            let prefix = format!("{prefix}_{}", upper(inner.get_name()));
            add(inner, &prefix, wanted)
        }
        false => inner,
    })
}

fn with_variable(arg: Arg, prefix: &str) -> Arg {
    let Some(flag) = arg.get_long().map(upper) else {
        return arg;
    };
    if matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    ) {
        return arg;
    }
    let name = match arg.get_env() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => format!("{prefix}_{flag}"),
    };
    let is_empty = std::env::var_os(&name).is_some_and(|value| value.is_empty());
    let arg = match arg.get_action() {
        // `1` and `yes` as well as `true`.
        ArgAction::SetTrue => arg.value_parser(BoolishValueParser::new()),
        _ => arg,
    };
    if is_empty {
        return arg.env(Resettable::Reset);
    }
    // One text for each flag, for as long as the process lives.
    let name: &'static str = name.leak();
    arg.env(name).hide_env_values(true)
}

fn upper(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::commands::command_line;

    fn collect(command: &Command, found: &mut BTreeMap<String, String>) {
        for arg in command.get_arguments() {
            let Some(flag) = arg
                .get_long()
                .filter(|&flag| flag != "help" && flag != "version")
            else {
                continue;
            };
            let name = arg
                .get_env()
                .map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_default();
            assert!(name.starts_with("TAILRACE_"), "--{flag}: {name:?}");
            // One variable is always the same flag.
            let known = found.entry(name.clone()).or_insert_with(|| flag.to_owned());
            assert_eq!(known, flag, "{name}");
        }
        for inner in command.get_subcommands() {
            collect(inner, found);
        }
    }

    #[test]
    fn the_command_line_is_sound() {
        command_line().debug_assert();
    }

    #[test]
    fn every_flag_has_a_variable_and_no_two_flags_share_one() {
        let mut found = BTreeMap::new();
        collect(&command_line(), &mut found);
        for name in [
            "TAILRACE_CONFIG",
            "TAILRACE_COLOR",
            "TAILRACE_GENERATE_LINES",
            "TAILRACE_LOG",
            "TAILRACE_RUN_WATCH",
        ] {
            assert!(found.contains_key(name), "{name} in {found:?}");
        }
    }
}
