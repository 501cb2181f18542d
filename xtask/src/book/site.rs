//! The book as a site, made by mdBook out of a copy.
//!
//! Pages link to files outside of `docs/`. The copy has all of `docs/` and these, in the same places, so that every link leads somewhere in the site
//! as it does in the repository. Links to directories are an exception: a site shows none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::links::links;
use crate::workspace::{Workspace, run as execute};

/// Where the copy begins, besides `docs/`.
const FIRST: [&str; 2] = ["README.md", "CHANGELOG.md"];

/// Builds the site; gives the number of its pages.
///
/// # Errors
/// When mdBook fails, or a link of a page leads nowhere.
pub(super) fn build(workspace: &Workspace) -> Result<usize> {
    let stage = workspace.target.join("book-src");
    let site = workspace.target.join("book");
    for dir in [&stage, &site] {
        if dir.exists() {
            fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
        }
    }
    let files = needed(&workspace.root)?;
    for file in &files {
        copy(&workspace.root, file, &stage.join("src"))?;
    }
    let read = |path: &str| {
        fs::read_to_string(workspace.root.join(path)).with_context(|| format!("cannot read {path}"))
    };
    let contents = contents(&read("docs/SUMMARY.md")?, &files);
    fs::write(stage.join("src/SUMMARY.md"), contents).context("cannot write the contents")?;
    let config = read("book.toml")?.replace("src = \"docs\"", "src = \"src\"");
    fs::write(stage.join("book.toml"), config).context("cannot write book.toml")?;
    let mut mdbook = workspace.command("mdbook", &["build"]);
    execute(mdbook.arg(&stage).arg("--dest-dir").arg(&site))?;
    check(&site)
}

/// The files of `docs/`, those that they link, and so on; relative to the root.
fn needed(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    let mut rest: Vec<PathBuf> = FIRST.iter().map(PathBuf::from).collect();
    let mut dirs = vec![root.join("docs")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                rest.push(path.strip_prefix(root)?.to_owned());
            }
        }
    }
    while let Some(file) = rest.pop() {
        let path = root.join(&file);
        if !path.is_file() || !files.insert(file.clone()) || !is_markdown(&file) {
            continue;
        }
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let dir = file.parent().unwrap_or(Path::new(""));
        let targets = links(&text).into_iter().filter_map(|link| {
            let target = link.split('#').next().unwrap_or_default().to_owned();
            (!target.is_empty()).then(|| plain(&dir.join(target)))
        });
        rest.extend(targets);
    }
    Ok(files)
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// A relative path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::Normal(name) => plain.push(name),
            _ => {}
        }
    }
    plain
}

fn copy(root: &Path, file: &Path, to: &Path) -> Result<()> {
    let target = to.join(file);
    let dir = target.parent().context("a file is in a directory")?;
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let source = root.join(file);
    let context = || format!("cannot copy {}", file.display());
    if is_markdown(file) {
        let text = fs::read_to_string(&source).with_context(context)?;
        return fs::write(&target, as_index(&text)).with_context(context);
    }
    fs::copy(&source, &target).with_context(context)?;
    Ok(())
}

/// A page whose links to README.md lead to index.html, which mdBook makes of it.
fn as_index(text: &str) -> String {
    let link = |part: &str| match part.split_once(')') {
        Some((target, rest)) => format!("{}){rest}", target.replace("README.md", "index.md")),
        None => part.to_owned(),
    };
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "](" + &link(part))
}

/// The contents of the copy: those of `docs/`, with README.md before and the other documents behind them.
fn contents(summary: &str, files: &BTreeSet<PathBuf>) -> String {
    let mut text = summary.replace("](", "](docs/");
    text = text.replacen("# Summary\n", "# Summary\n\n[Overview](README.md)\n", 1);
    text.push_str("\n# The project\n\n");
    for file in files {
        let is_other =
            is_markdown(file) && !file.starts_with("docs") && file != Path::new("README.md");
        if is_other {
            let title = file
                .with_extension("")
                .display()
                .to_string()
                .replace('/', " / ");
            text.push_str(&format!("- [{title}]({})\n", file.display()));
        }
    }
    text
}

/// Looks whether the links of all pages lead to a file of the site; gives the number of pages.
fn check(site: &Path) -> Result<usize> {
    let mut pages = 0;
    let mut broken = Vec::new();
    let mut dirs = vec![site.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "html")
            {
                pages += 1;
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                let gone = targets(&text)
                    .filter(|target| !dir.join(target).exists() && !is_directory(target));
                broken.extend(gone.map(|target| format!("{}: {target}", path.display())));
            }
        }
    }
    if !broken.is_empty() {
        bail!("links that lead nowhere:\n{}", broken.join("\n"));
    }
    Ok(pages)
}

/// What a page links within the site.
fn targets(html: &str) -> impl Iterator<Item = &str> {
    html.split("<a ").skip(1).filter_map(|tag| {
        let (_, rest) = tag.split('>').next()?.split_once("href=\"")?;
        let target = rest.split(['"', '#']).next()?;
        let is_within = !target.is_empty() && !target.contains(':') && !target.starts_with('/');
        is_within.then_some(target)
    })
}

/// A name without an extension, other than LICENSE.
fn is_directory(target: &str) -> bool {
    let name = target
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    !name.contains('.') && name != "LICENSE"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_has_what_pages_link() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let files = needed(root).unwrap();
        for file in [
            "docs/cookbook.md",
            "config/tailrace.yaml",
            "SECURITY.md",
            "LICENSE",
        ] {
            assert!(files.contains(Path::new(file)), "{file}: {files:?}");
        }
        let contents = contents("# Summary\n\n[A](README.md)\n", &files);
        assert!(
            contents.starts_with("# Summary\n\n[Overview](README.md)\n\n[A](docs/README.md)\n"),
            "{contents}"
        );
        assert!(
            contents.contains("\n- [CHANGELOG](CHANGELOG.md)\n"),
            "{contents}"
        );
    }

    #[test]
    fn links_to_a_readme_lead_to_the_index() {
        let text = "README.md [a](../README.md#b) (README.md) [c](d.md) [e](README.md";
        assert_eq!(
            as_index(text),
            "README.md [a](../index.md#b) (README.md) [c](d.md) [e](README.md"
        );
    }

    #[test]
    fn links_of_a_page_are_compared_with_the_site() {
        let site = tempfile::tempdir().unwrap();
        let page = site.path().join("a.html");
        let links = "<a href=\"b.html#x\"></a><a class=\"c\" href=\"https://d\"></a><a href=\"#e\"></a><a href=\"f\">";
        fs::write(&page, links).unwrap();
        let error = check(site.path()).unwrap_err().to_string();
        assert!(error.ends_with("a.html: b.html"), "{error}");
        fs::write(site.path().join("b.html"), "").unwrap();
        assert_eq!(check(site.path()).unwrap(), 2);
    }
}
