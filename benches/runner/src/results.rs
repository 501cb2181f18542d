//! Files of results: one CSV per day and kind under `benches/results`, with the machine and the commit in its head.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use xtask::workspace::{Workspace, capture};

/// A file of results that is written anew after every row, so that an interrupted run leaves what it has.
pub(crate) struct Csv {
    path: PathBuf,
    text: String,
}

impl Csv {
    /// `benches/results/DATE{suffix}.csv` with these columns.
    pub(crate) fn create(workspace: &Workspace, suffix: &str, columns: &str) -> Result<Csv> {
        let dir = workspace.root.join("benches/results");
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let date = capture(&mut workspace.command("date", &["-u", "+%F"]))?;
        let csv = Csv {
            path: dir.join(format!("{}{suffix}.csv", date.trim())),
            text: format!("# {}\n{columns}\n", machine(workspace)),
        };
        csv.write()?;
        Ok(csv)
    }

    /// Adds a row; the file holds it when this returns.
    pub(crate) fn push(&mut self, fields: &[String]) -> Result<()> {
        self.text.push_str(&fields.join(","));
        self.text.push('\n');
        self.write()
    }

    /// Where it is, from the workspace's root.
    pub(crate) fn name(&self, workspace: &Workspace) -> String {
        let path = self.path.strip_prefix(&workspace.root);
        path.unwrap_or(&self.path).display().to_string()
    }

    fn write(&self) -> Result<()> {
        fs::write(&self.path, &self.text)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// The commit, and whether anything differs from it but what publishing writes.
fn commit(workspace: &Workspace) -> Result<String> {
    let commit = capture(&mut workspace.command("git", &["describe", "--always"]))?;
    let changes = [
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        ".",
        ":!benches/results",
        ":!docs",
    ];
    let changes = capture(&mut workspace.command("git", &changes))?;
    let dirty = if changes.trim().is_empty() {
        ""
    } else {
        "-dirty"
    };
    Ok(format!("{}{dirty}", commit.trim()))
}

/// The commit, the processor and how many of its threads there are.
pub(crate) fn machine(workspace: &Workspace) -> String {
    let commit = commit(workspace).unwrap_or_else(|_| "no git".to_owned());
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models: Vec<&str> = cpus
        .lines()
        .filter_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map(|(_, model)| model.trim())
        .collect();
    let model = models.first().copied().unwrap_or("unknown processor");
    format!("commit {}, {} x {model}", commit.trim(), models.len())
}

/// Puts `text` into docs/performance.md, between `<!-- bench NAME -->` and the next `<!-- end -->`.
pub(crate) fn publish(workspace: &Workspace, name: &str, text: &str) -> Result<()> {
    let path = workspace.root.join("docs/performance.md");
    let old = fs::read_to_string(&path).context("cannot read docs/performance.md")?;
    let new = replaced(&old, name, text)
        .with_context(|| format!("docs/performance.md has no place for `bench {name}`"))?;
    fs::write(&path, new).context("cannot write docs/performance.md")
}

fn replaced(page: &str, name: &str, text: &str) -> Option<String> {
    let open = format!("<!-- bench {name} -->\n");
    let (before, rest) = page.split_once(&open)?;
    let at = rest.find("<!-- end -->")?;
    Some(format!(
        "{before}{open}\n{}\n\n{}",
        text.trim(),
        &rest[at..]
    ))
}

/// The middle one, or the mean of the two in the middle; NaN of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match (sorted.get(half), sorted.len() % 2) {
        (None, _) => f64::NAN,
        (Some(middle), 1) => *middle,
        (Some(above), _) => (sorted[half - 1] + above) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_place_of_a_page_changes() {
        let page = "a\n<!-- bench x -->\nold\n<!-- end -->\nb\n<!-- bench y -->\n<!-- end -->\n";
        let new = "a\n<!-- bench x -->\n\nnew\n\n<!-- end -->\nb\n<!-- bench y -->\n<!-- end -->\n";
        assert_eq!(replaced(page, "x", "new\n").as_deref(), Some(new));
        assert_eq!(replaced(new, "x", "new").as_deref(), Some(new));
        assert_eq!(replaced(page, "z", "new"), None);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
