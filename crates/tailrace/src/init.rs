//! `tailrace init`: writes a commented config to begin with. The presets are files of `config/presets`; what depends on the
//! machine, the logs that are there, is put in place of their `tailrace init:` lines. An existing file is never overwritten.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use crate::cli::Failure;
use crate::{inferred, printed, style};

/// Arguments of `tailrace init`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to begin with. Without it: `kubernetes` in a cluster, else `vm`.
    #[arg(long, value_enum)]
    preset: Option<Preset>,
    /// The file to write, which must not exist; `-` is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "tailrace.yaml")]
    output: PathBuf,
}

/// A config to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Preset {
    /// The logs of a virtual machine or server, and of the services that are on it.
    Vm,
    /// The pods of a Kubernetes node.
    Kubernetes,
    /// Log files of the working directory, printed.
    Laptop,
    /// What a program writes into a pipe.
    Stdin,
}

impl Preset {
    fn text(self) -> &'static str {
        match self {
            Self::Vm => include_str!("../../../config/presets/vm.yaml"),
            Self::Kubernetes => include_str!("../../../config/presets/kubernetes.yaml"),
            Self::Laptop => include_str!("../../../config/presets/laptop.yaml"),
            Self::Stdin => include_str!("../../../config/presets/stdin.yaml"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Kubernetes => "kubernetes",
            Self::Laptop => "laptop",
            Self::Stdin => "stdin",
        }
    }
}

/// Logs that a machine may have: the glob, and the file or directory that shows that they are there.
const LOGS: [(&str, &str); 9] = [
    // Always read: something is in it, or will be.
    ("/var/log/*.log", "/"),
    ("/var/log/syslog", "/var/log/syslog"),
    ("/var/log/messages", "/var/log/messages"),
    ("/var/log/secure", "/var/log/secure"),
    ("/var/log/nginx/*.log", "/var/log/nginx"),
    ("/var/log/apache2/*.log", "/var/log/apache2"),
    ("/var/log/httpd/*_log", "/var/log/httpd"),
    ("/var/log/mysql/*.log", "/var/log/mysql"),
    ("/var/log/postgresql/*.log", "/var/log/postgresql"),
];

/// Where Docker keeps the logs of containers.
const DOCKER_DIR: &str = "/var/lib/docker/containers";

const DOCKER: [&str; 6] = [
    "docker:",
    "  input: {type: file, include: ['/var/lib/docker/containers/*/*-json.log'], format: docker}",
    "  output:",
    "    type: otlp",
    "    endpoint: ${OTEL_EXPORTER_OTLP_ENDPOINT:-http://localhost:4318}",
    "    attributes: {file_path: true}",
];

/// What a line of a preset begins with in place of which something is put.
const MARK: &str = "# tailrace init: ";

/// Writes the config.
///
/// # Errors
///
/// The file exists, or cannot be written.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let is_node = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
        || Path::new(inferred::PODS_DIR).is_dir();
    let found = if is_node {
        Preset::Kubernetes
    } else {
        Preset::Vm
    };
    let preset = args.preset.unwrap_or(found);
    let text = compose(preset, &|path| fs::symlink_metadata(path).is_ok());
    if args.output == Path::new("-") {
        out.write_all(text.as_bytes()).context("stdout")?;
        return Ok(());
    }
    create(&args.output, &text)?;
    let path = printed::path(&args.output);
    writeln!(out, "wrote {path}, preset {}", style::strong(preset.name())).context("stdout")?;
    writeln!(out, "\nRead it, change it, and check it:\n").context("stdout")?;
    for command in ["validate", "run"] {
        let command = format!("tailrace {command} -c {path}");
        writeln!(out, "    {}", style::accent(command)).context("stdout")?;
    }
    Ok(())
}

fn create(path: &Path, text: &str) -> anyhow::Result<()> {
    let shown = path.display();
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(anyhow!(
                "{shown} exists and is not overwritten: name another file with --output, or move it away"
            ));
        }
        Err(error) => return Err(error).with_context(|| format!("{shown} cannot be made")),
    };
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    written.map_err(|error| {
        // Half a config is worse than none.
        let _ = fs::remove_file(path);
        anyhow!(error).context(format!("{shown} cannot be written"))
    })
}

/// The text of a preset on a machine. Pure.
fn compose(preset: Preset, exists: &dyn Fn(&Path) -> bool) -> String {
    let mut text = String::new();
    for line in preset.text().lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let lines = match line.trim_start().strip_prefix(MARK) {
            None => {
                text.push_str(line);
                text.push('\n');
                continue;
            }
            Some("logs") => log_lines(exists),
            Some(_) => docker_lines(exists),
        };
        for line in lines {
            text.push_str(&format!("{indent}{line}\n"));
        }
    }
    text
}

fn log_lines(exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let line = |(glob, sign): &(&str, &str)| match exists(Path::new(sign)) {
        true => format!("- {glob}"),
        false => format!("# - {glob}"),
    };
    LOGS.iter().map(line).collect()
}

fn docker_lines(exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let prefix = match exists(Path::new(DOCKER_DIR)) {
        true => "",
        false => "# ",
    };
    DOCKER
        .iter()
        .map(|line| format!("{prefix}{line}"))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::ValueEnum;
    use tailrace_config::{ReadOnce, load_once};

    use super::*;

    /// The config, valid down to its queries, with the whole environment or with none of it.
    fn check(text: &str, env: &dyn Fn(&str) -> Option<String>) -> tailrace_config::Config {
        let once = ReadOnce::default().with("t.yaml", text.to_owned());
        let loaded = load_once(&["t.yaml".into()], &once, env);
        let config = loaded
            .config
            .unwrap_or_else(|found| panic!("{found:?}\n{text}"));
        tailrace_pipeline::prepare(&config).unwrap();
        config
    }

    #[test]
    fn every_preset_is_valid_on_every_machine() {
        let nothing = |path: &Path| path == Path::new("/");
        for &preset in Preset::value_variants() {
            for exists in [&nothing as &dyn Fn(&Path) -> bool, &|_| true] {
                let text = compose(preset, exists);
                assert!(!text.contains(MARK), "{text}");
                check(&text, &|_| None);
                check(&text, &|name| {
                    text.contains(name).then(|| "http://h:1".to_owned())
                });
                let comments = text.lines().filter(|line| line.contains('#')).count();
                assert!(comments >= 5, "{text}");
            }
            assert_eq!(
                preset.to_possible_value().unwrap().get_name(),
                preset.name()
            );
        }
    }

    #[test]
    fn the_logs_of_this_machine_are_read() {
        let exists = |path: &Path| {
            ["/", "/var/log/nginx", DOCKER_DIR]
                .iter()
                .any(|it| path == Path::new(it))
        };
        let text = compose(Preset::Vm, &exists);
        assert!(text.contains("        - /var/log/nginx/*.log\n"), "{text}");
        assert!(
            text.contains("        # - /var/log/httpd/*_log\n"),
            "{text}"
        );
        let config = check(&text, &|_| None);
        assert_eq!(
            config.pipelines.keys().collect::<Vec<_>>(),
            ["docker", "host"]
        );
    }

    #[test]
    fn what_is_commented_out_is_valid_too() {
        // Options that are offered as comments, alone on their line.
        for &preset in Preset::value_variants() {
            let text = compose(preset, &|_| true);
            for (number, line) in text.lines().enumerate() {
                let option = line.trim_start().strip_prefix("# ");
                let is_option = |text: &&str| {
                    let key = text.split(':').next().unwrap_or("");
                    text.contains(": ") && !key.contains(' ') && key == key.to_lowercase()
                };
                let Some(option) = option.filter(is_option) else {
                    continue;
                };
                let with: Vec<String> = text
                    .lines()
                    .enumerate()
                    .filter(|(at, line)| {
                        // It takes the place of an option of its name.
                        let key = format!("{}:", option.split(':').next().unwrap());
                        *at == number
                            || !(preset == Preset::Laptop && line.trim_start().starts_with(&key))
                    })
                    .map(|(at, line)| match at == number {
                        true => line.replacen("# ", "", 1),
                        false => line.to_owned(),
                    })
                    .collect();
                let with = with.join("\n").replace("${file:/etc/tailrace/token}", "x");
                check(&with, &|_| None);
            }
        }
    }
}
