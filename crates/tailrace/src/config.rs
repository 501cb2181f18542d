//! `tailrace config`: the effective config, each value with its origin; and the JSON Schema of all options.

use std::io::Write;

use anyhow::Context;
use serde_json::{Value, json};
use tailrace_config::{Effective, Origin, Setting, Written};

use crate::cli::{ConfigArgs, Failure, Format};
use crate::{printed, resource};

/// Arguments of `tailrace config`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the config that `run` would use, defaults included, each value with its origin. Secrets are left out.
    Print(PrintArgs),
    /// Print the JSON Schema of the config, for editors.
    Schema,
}

#[derive(Debug, clap::Args)]
struct PrintArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// How the config is printed; as text it is YAML.
    #[arg(long, value_enum, default_value_t = Format::Text, env = "TAILRACE_FORMAT")]
    format: Format,
}

/// Prints a config, or the schema.
///
/// # Errors
///
/// A bad config.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let text = match &args.command {
        Command::Print(args) => {
            let env = |name: &str| std::env::var(name).ok();
            let effective = effective(&args.config, &env)?;
            match args.format {
                Format::Text => tailrace_config::to_yaml(&effective),
                Format::Json => printed::json_line(&to_json(&effective).to_string()) + "\n",
            }
        }
        Command::Schema => tailrace_config::json_schema(),
    };
    out.write_all(text.as_bytes()).context("stdout")?;
    Ok(())
}

/// Every option of a config with its origin, those of the command line and the environment included.
///
/// # Errors
///
/// A bad config.
pub(crate) fn effective(
    args: &ConfigArgs,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Effective, Failure> {
    let loaded = args.load_effective(env)?;
    printed::hide(&loaded.redactor);
    let config = loaded.config?;
    let mut effective = loaded.effective.unwrap_or_default();
    if let Some(data_dir) = &args.data_dir {
        let data_dir = data_dir.to_string_lossy();
        let variable = "TAILRACE_DATA_DIR";
        let is_variable = env(variable).is_some_and(|value| value == data_dir);
        let origin = if is_variable {
            format!("${variable}")
        } else {
            "--data-dir".to_owned()
        };
        effective.set("data_dir", &data_dir, Origin::Flag(origin));
    }
    for key in resource::with_environment(&config.resource, env).keys() {
        let is_name = key == "service.name";
        let is_own = is_name && env("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty());
        let variable = match is_own {
            true => "OTEL_SERVICE_NAME",
            false => "OTEL_RESOURCE_ATTRIBUTES",
        };
        effective.set_by_variable("resource", key, variable);
    }
    Ok(effective)
}

fn to_json(effective: &Effective) -> Value {
    let options = effective.options().iter();
    json!({"options": options.map(option).collect::<Vec<_>>()})
}

fn option(option: &Setting) -> Value {
    let value = match &option.value {
        Written::Scalar { text, .. } => json!(text),
        Written::EmptyList => json!([]),
        Written::EmptyMapping => json!({}),
    };
    let mut object = json!({
        "path": option.path_text(),
        "value": value,
        "from": option.from,
    });
    match &option.origin {
        Origin::Default => object["origin"] = json!("default"),
        Origin::Place(position) => {
            object["origin"] = json!("file");
            object["file"] = json!(position.file().to_string_lossy());
            object["line"] = json!(position.line());
        }
        Origin::Variable(name) => {
            object["origin"] = json!("variable");
            object["from"] = json!([format!("${name}")]);
        }
        Origin::Flag(name) => {
            object["origin"] = json!("flag");
            object["from"] = json!([name]);
        }
    }
    if let Some(text) = &option.expands_to {
        object["expands_to"] = json!(text);
    }
    object
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "TAILRACE_DATA_DIR" => Some("/from/variable".to_owned()),
            "OTEL_SERVICE_NAME" => Some("planted-service".to_owned()),
            "OTEL_RESOURCE_ATTRIBUTES" => Some("zone=planted-zone,own=planted-own".to_owned()),
            "PLANTED_IN_CONFIG_RS" => Some("planted-config-rs".to_owned()),
            _ => None,
        }
    }

    fn args(data_dir: &str) -> (tempfile::TempDir, ConfigArgs) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.yaml");
        let text = "pipelines: {a: {input: {type: stdin}, output: {type: otlp}}}\n\
                    resource: {own: '${PLANTED_IN_CONFIG_RS}'}\n";
        std::fs::write(&path, text).unwrap();
        let args = ConfigArgs {
            config: vec![path],
            data_dir: Some(data_dir.into()),
            ..ConfigArgs::default()
        };
        (directory, args)
    }

    #[test]
    fn flags_and_variables_beside_the_files_are_origins() {
        let (_directory, from_flag) = args("/from/$flag");
        let yaml = tailrace_config::to_yaml(&effective(&from_flag, &env).unwrap());
        let (_directory, from_variable) = args("/from/variable");
        let other = tailrace_config::to_yaml(&effective(&from_variable, &env).unwrap());
        for (yaml, line) in [
            (&yaml, "data_dir: \"/from/$$flag\"  # --data-dir"),
            (&yaml, "  # service.name: from $OTEL_SERVICE_NAME"),
            (&yaml, "  # zone: from $OTEL_RESOURCE_ATTRIBUTES"),
            (&other, "data_dir: \"/from/variable\"  # $TAILRACE_DATA_DIR"),
        ] {
            assert!(yaml.lines().any(|it| it == line), "{line} in\n{yaml}");
        }
        // What the file sets wins, and no value of a variable is shown.
        assert!(
            !yaml.contains("# own") && !yaml.contains("planted-"),
            "{yaml}"
        );
    }

    #[test]
    fn a_program_gets_every_option() {
        let (_directory, args) = args("/from/flag");
        let effective = effective(&args, &env).unwrap();
        let json = to_json(&effective);
        let options = json["options"].as_array().unwrap();
        assert_eq!(options.len(), effective.options().len());
        let find = |path: &str| {
            let found = options.iter().find(|option| option["path"] == path);
            found.unwrap_or_else(|| panic!("{path} in {json:#}"))
        };
        assert_eq!(find("pipelines.a.input.type")["line"], 1);
        assert_eq!(find("pipelines.a.batch.max_wait")["origin"], "default");
        assert_eq!(find("data_dir")["from"][0], "--data-dir");
        assert_eq!(find("resource.zone")["origin"], "variable");
        assert_eq!(find("resource.own")["from"][0], "${PLANTED_IN_CONFIG_RS}");
        assert!(!json.to_string().contains("planted-"), "{json:#}");
    }
}
