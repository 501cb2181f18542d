//! Runs the commands of the README and of pages with a walk-through, so that what they tell people to type works.
//!
//! A block that opens with exactly three backticks and `sh` is run by bash in
//! the workspace's root, with `cargo run --release --` replaced by the binary
//! that the tests left behind. Lines that call `cargo xtask` are left out and
//! named: one of them is the command that is running. Other blocks (`yaml`,
//! `console`) are not run.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::steps::Steps;
use crate::workspace::{Workspace, run as execute};

/// The pages, from the workspace's root.
const PAGES: [&str; 2] = ["README.md", "docs/admin.md"];

/// Adds one step per block.
pub(crate) fn run(workspace: &Workspace, steps: &mut Steps) -> Result<()> {
    PAGES
        .iter()
        .try_for_each(|page| run_page(workspace, steps, page))
}

fn run_page(workspace: &Workspace, steps: &mut Steps, page: &str) -> Result<()> {
    let path = workspace.root.join(page);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let binary = workspace.target.join("debug/tailrace");
    for block in shell_blocks(&text) {
        let name = format!("{} line {}", page.trim_end_matches(".md"), block.line);
        let (script, left_out) = prepare(&block.text, &binary.to_string_lossy());
        if !left_out.is_empty() {
            steps.skip(&name, left_out.join("; "));
        }
        if script.trim().is_empty() {
            continue;
        }
        steps.run(&name, || {
            if !binary.is_file() {
                bail!(
                    "{} is missing: the step `tests` builds it",
                    binary.display()
                );
            }
            let arguments = [
                "--kill-after=10",
                "300",
                "bash",
                "-euo",
                "pipefail",
                "-c",
                &script,
            ];
            execute(&mut workspace.command("timeout", &arguments))
        });
    }
    Ok(())
}

struct Block {
    /// The line of the opening fence, from 1.
    line: usize,
    text: String,
}

fn shell_blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(bool, Block)> = None;
    for (index, line) in markdown.lines().enumerate() {
        match (&mut open, line.trim_end()) {
            (None, fence) if fence.starts_with("```") => {
                let block = Block {
                    line: index + 1,
                    text: String::new(),
                };
                open = Some((fence == "```sh", block));
            }
            (Some(_), "```") => {
                blocks.extend(
                    open.take()
                        .filter(|(shell, _)| *shell)
                        .map(|(_, block)| block),
                );
            }
            (Some((_, block)), _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            _ => {}
        }
    }
    blocks
}

/// The script to run, and the commands that were left out of it.
fn prepare(block: &str, binary: &str) -> (String, Vec<String>) {
    let mut script = String::new();
    let mut left_out = Vec::new();
    for line in block.lines() {
        let command = line.split(" #").next().unwrap_or_default().trim();
        if command.starts_with('#') {
            continue;
        }
        if command.starts_with("cargo xtask") {
            left_out.push(format!("`{command}`"));
            continue;
        }
        script.push_str(&line.replace("cargo run --release --", &format!("'{binary}'")));
        script.push('\n');
    }
    (script, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shell_blocks_are_taken() {
        let markdown = "x\n```sh\na\nb\n```\n```yaml\nc: d\n```\n```sh\ne\n```\n";
        let blocks: Vec<(usize, String)> = shell_blocks(markdown)
            .into_iter()
            .map(|block| (block.line, block.text))
            .collect();
        assert_eq!(blocks, [(2, "a\nb\n".to_owned()), (9, "e\n".to_owned())]);
    }

    #[test]
    fn cargo_run_becomes_the_binary_and_xtask_is_left_out() {
        let block = "# comment\ncargo run --release -- demo   # one\ncargo xtask test   # two\n";
        let (script, left_out) = prepare(block, "/t/tailrace");
        assert_eq!(script, "'/t/tailrace' demo   # one\n");
        assert_eq!(left_out, ["`cargo xtask test`"]);
    }
}
