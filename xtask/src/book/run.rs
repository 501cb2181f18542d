//! The run of a page: one shell script of all its blocks, in an empty directory.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::page::{Action, END, Page};
use crate::workspace::{Workspace, run as execute};

const SECONDS_MAX: &str = "300";

/// What pages may call besides the programs of the machine.
pub(super) struct Programs {
    pub(super) tailrace: PathBuf,
    pub(super) collector: Option<PathBuf>,
}

impl Page {
    /// Runs the page in this directory, which is emptied first.
    ///
    /// # Errors
    /// When a script or a config fails, or prints something else than the page says.
    pub(super) fn run(&self, workspace: &Workspace, dir: &Path, programs: &Programs) -> Result<()> {
        if dir.exists() {
            fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
        }
        let (work, bin, out) = (dir.join("work"), dir.join("bin"), dir.join("out"));
        for dir in [&work, &bin, &out] {
            fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        }
        symlink(&programs.tailrace, bin.join("tailrace"))?;
        if let Some(collector) = &programs.collector {
            symlink(collector, bin.join("otelcol"))?;
        }
        let script = dir.join("script");
        fs::write(&script, self.script(&bin, &out)?).context("cannot write the script")?;
        let mut command = workspace.command("timeout", &["--kill-after=10", SECONDS_MAX, "bash"]);
        command
            .arg(&script)
            .current_dir(&work)
            .env("HOME", &work)
            .env("NO_COLOR", "1");
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("TAILRACE_") || text.starts_with("OTEL_") {
                command.env_remove(&name);
            }
        }
        let last = || fs::read_to_string(out.join("line")).unwrap_or_default();
        execute(&mut command).with_context(|| format!("line {}", last().trim()))?;
        for (line, action) in &self.actions {
            if let Action::Expect { of, text } = action {
                let path = out.join(format!("{of}.out"));
                let printed = fs::read_to_string(&path)
                    .with_context(|| format!("line {of} printed no text"))?;
                if !matches(&printed, text) {
                    bail!("line {line}: the page says\n{text}\nline {of} printed\n{printed}");
                }
            }
        }
        Ok(())
    }

    fn script(&self, bin: &Path, out: &Path) -> Result<String> {
        let (bin, out) = (bin.display(), out.display());
        let mut script = format!(
            "set -euo pipefail\nexport PATH='{bin}':\"$PATH\"\nexec 3>&1\n\
             end() {{ trap - EXIT; jobs=$(jobs -p); [ -z \"$jobs\" ] || kill $jobs 2>/dev/null || true; wait; }}\ntrap end EXIT\n"
        );
        for (line, action) in &self.actions {
            writeln!(script, "echo {line} > '{out}/line'")?;
            match action {
                Action::Write { name, text } => {
                    writeln!(
                        script,
                        "mkdir -p \"$(dirname '{name}')\"\ncat > '{name}' <<'{END}'\n{text}{END}"
                    )?;
                }
                Action::Validate { config } => {
                    let path = format!("{out}/{line}.yaml");
                    writeln!(script, "cat > '{path}' <<'{END}'\n{config}{END}")?;
                    let variables = assignments(config);
                    writeln!(
                        script,
                        "{variables}tailrace validate --no-environment -c '{path}' > '{out}/{line}.out' 2>&1 || {{ cat '{out}/{line}.out' >&2; false; }}"
                    )?;
                }
                Action::Run { script: text } => {
                    let text = text.replace("cargo run --release --", "tailrace");
                    writeln!(
                        script,
                        "exec > '{out}/{line}.out'\n{text}exec >&3\ncat '{out}/{line}.out'"
                    )?;
                }
                Action::Expect { .. } => {}
            }
        }
        Ok(script)
    }
}

/// The variables that a config needs: `${NAME}` and `${NAME:?...}`, as assignments in front of a command.
fn assignments(config: &str) -> String {
    let mut names = BTreeSet::new();
    for part in config.split("${").skip(1) {
        let part = part.strip_prefix("env:").unwrap_or(part);
        let end = part
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        if !name.is_empty() && (rest.starts_with('}') || rest.starts_with(":?")) {
            names.insert(name);
        }
    }
    names
        .iter()
        .map(|name| format!("{name}=example "))
        .collect()
}

/// Whether what was printed is what the page says. A line `...` stands for any lines.
fn matches(printed: &str, said: &str) -> bool {
    fn lines(printed: &[&str], said: &[&str]) -> bool {
        match said {
            [] => printed.is_empty(),
            ["...", rest @ ..] => (0..=printed.len()).any(|from| lines(&printed[from..], rest)),
            [line, rest @ ..] => printed.first() == Some(line) && lines(&printed[1..], rest),
        }
    }
    let split = |text: &'_ str| -> Vec<String> {
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    };
    let (printed, said) = (split(printed), split(said));
    let printed: Vec<&str> = printed.iter().map(String::as_str).collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    lines(&printed, &said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_runs_in_one_shell_and_its_outputs_are_compared() {
        let workspace = Workspace::find().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let run = |text: &str| {
            Page::read(text, true).unwrap().run(
                &workspace,
                &dir.path().join("page"),
                &Programs {
                    tailrace: PathBuf::from("/bin/true"),
                    collector: Some(PathBuf::from("/bin/true")),
                },
            )
        };
        let page = "```text d/a.txt\none\ntwo\n```\n```sh\nx=$(wc -l < d/a.txt)\nsleep 300 &\n```\n\
                    ```sh\necho $x; cat d/a.txt; tailrace\n```\n```sh needs-collector\necho 2; cat d/a.txt; otelcol\n```\n```text output\n2\n...\ntwo\n```\n";
        run(page).unwrap();
        let wrong = run(&page.replace("2\n...", "3\n..."))
            .unwrap_err()
            .to_string();
        assert!(wrong.contains("line 15"), "{wrong}");
        let failed = format!("{:#}", run("a\n```sh\nfalse\n```\n").unwrap_err());
        assert!(failed.contains("line 2"), "{failed}");
    }

    #[test]
    fn dots_stand_for_any_lines() {
        assert!(matches("a\nb\nc\n", "a\n...\nc\n"));
        assert!(matches("a\nc \n", "a\n...\nc\n"));
        assert!(!matches("a\nb\n", "a\n"));
        assert!(!matches("a\n", "a\nb\n"));
    }

    #[test]
    fn variables_without_a_default_are_set() {
        let config = "a: ${A} ${env:B} ${C:-x} ${D:?e} $$ ${file:/x} ${A}";
        assert_eq!(assignments(config), "A=example B=example D=example ");
        assert_eq!(assignments("${"), "");
    }
}
