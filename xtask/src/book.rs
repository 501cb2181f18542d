//! The book in `docs/`: what its pages tell people to type is run, and mdBook makes a site of it.
//!
//! Each page runs in a directory of its own, its blocks one after the other, in one shell: `book/page.rs` has the rules, `book/run.rs`
//! runs it. That links lead somewhere and that quoted messages exist are unit tests: `book/links.rs`, `book/messages.rs`.

mod blocks;
mod functions;
mod links;
#[cfg(test)]
mod messages;
mod page;
mod run;
mod site;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use self::page::Page;
use self::run::Programs;
use crate::collector;
use crate::steps::Steps;
use crate::workspace::{Workspace, on_path};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The agent that runs the examples [default: the one that the tests left behind]
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Only these pages, such as `cookbook.md`
    pages: Vec<String>,
}

/// Runs pages by name, or the whole step.
pub(crate) fn command(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    let binary = match &args.binary {
        Some(binary) => {
            fs::canonicalize(binary).with_context(|| format!("cannot read {}", binary.display()))?
        }
        None => workspace.target.join("debug/tailrace"),
    };
    let programs = programs(workspace, binary);
    let mut steps = Steps::default();
    let all = pages(workspace)?;
    for name in &args.pages {
        if !all.iter().any(|page| page.ends_with(name)) {
            bail!("docs/ has no page {name}");
        }
    }
    let wanted =
        |page: &Path| args.pages.is_empty() || args.pages.iter().any(|name| page.ends_with(name));
    for page in all.iter().filter(|page| wanted(page)) {
        run_page(workspace, page, &programs, &mut steps)?;
    }
    if args.pages.is_empty() {
        build(workspace, &mut steps);
    }
    Ok(steps.finish())
}

/// The step `book`: a step for each page that has something to run, and one for the site.
pub(crate) fn run(workspace: &Workspace, steps: &mut Steps) -> Result<()> {
    let programs = programs(workspace, workspace.target.join("debug/tailrace"));
    for page in pages(workspace)? {
        run_page(workspace, &page, &programs, steps)?;
    }
    build(workspace, steps);
    Ok(())
}

/// The agent, and the Collector if it was built.
fn programs(workspace: &Workspace, tailrace: PathBuf) -> Programs {
    Programs {
        tailrace,
        collector: collector::built(workspace),
    }
}

fn run_page(
    workspace: &Workspace,
    path: &Path,
    programs: &Programs,
    steps: &mut Steps,
) -> Result<()> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let page =
        Page::read(&text, programs.collector.is_some()).with_context(|| format!("docs/{name}"))?;
    if name == functions::PAGE {
        steps.run("book: functions.md: examples", || {
            let count = functions::run(workspace, programs, &text)?;
            println!("{count} examples");
            Ok(())
        });
    }
    if page.is_idle() {
        return Ok(());
    }
    steps.run(&format!("book: {name}: {}", page.summary()), || {
        if !programs.tailrace.is_file() {
            bail!(
                "{} is missing: the step `tests` builds it",
                programs.tailrace.display()
            );
        }
        page.run(
            workspace,
            &workspace.target.join("book-run").join(&name),
            programs,
        )
    });
    Ok(())
}

/// The site, below the build directory.
fn build(workspace: &Workspace, steps: &mut Steps) {
    const STEP: &str = "book: site";
    if !on_path("mdbook") {
        return steps.skip(STEP, "`cargo xtask setup` brings mdbook");
    }
    steps.run(STEP, || {
        let pages = site::build(workspace)?;
        println!(
            "{pages} pages in {}",
            workspace.target.join("book").display()
        );
        Ok(())
    });
}

/// The pages of the book, in order of their names. Decisions are no pages that run anything.
fn pages(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let dir = workspace.root.join("docs");
    let mut pages = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}
