//! Links between documents: each file and each heading that is linked exists, and the book's contents list every page.

use super::blocks::prose;

/// What is linked within the repository: `PATH`, `PATH#HEADING` or `#HEADING`.
pub(super) fn links(markdown: &str) -> Vec<String> {
    let prose = prose(markdown);
    let mut links = Vec::new();
    let mut rest = prose.as_str();
    while let Some((_, after)) = rest.split_once("](") {
        let target = after.split([')', ' ', '\n']).next().unwrap_or_default();
        if !target.contains("://") && !target.starts_with("mailto:") {
            links.push(target.to_owned());
        }
        rest = after;
    }
    links
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Directories that are not ours, or hold no documents.
    const LEFT_OUT: [&str; 5] = [".git", "target", "node_modules", "corpus", "golden"];

    #[test]
    fn links_lead_to_files_and_headings_that_exist() {
        let root = root();
        let mut count = 0;
        let mut broken = Vec::new();
        for path in documents(&root) {
            let text = fs::read_to_string(&path).unwrap();
            for link in links(&text) {
                count += 1;
                if let Some(fault) = fault(&path, &link) {
                    let name = path.strip_prefix(&root).unwrap().display();
                    broken.push(format!("{name}: {link}: {fault}"));
                }
            }
        }
        assert!(broken.is_empty(), "{}", broken.join("\n"));
        assert!(count > 100, "only {count} links were found");
        println!("{count} links");
    }

    #[test]
    fn the_contents_list_every_page_of_the_book() {
        let docs = root().join("docs");
        let contents = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
        let listed: BTreeSet<String> = links(&contents).into_iter().collect();
        let mut pages = BTreeSet::new();
        for path in documents(&docs) {
            let name = path.strip_prefix(&docs).unwrap().display().to_string();
            if name != "SUMMARY.md" {
                pages.insert(name);
            }
        }
        let missing: Vec<&String> = pages.difference(&listed).collect();
        assert!(missing.is_empty(), "docs/SUMMARY.md lacks {missing:?}");
    }

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .unwrap()
            .to_owned()
    }

    fn documents(dir: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut dirs = vec![dir.to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() && !LEFT_OUT.contains(&name.as_str()) {
                    dirs.push(path);
                } else if name.ends_with(".md") {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// What is wrong with a link of this document.
    fn fault(document: &Path, link: &str) -> Option<String> {
        let (path, heading) = match link.split_once('#') {
            Some((path, heading)) => (path, Some(heading)),
            None => (link, None),
        };
        let target = match path {
            "" => document.to_owned(),
            path => document.parent().unwrap().join(path),
        };
        if !target.exists() {
            return Some("there is no such file".to_owned());
        }
        let heading = heading?;
        let text = fs::read_to_string(&target).unwrap_or_default();
        let missing = !headings(&text).contains(heading);
        missing.then(|| "there is no such heading".to_owned())
    }

    /// The anchors of a document's headings, as GitHub and mdBook make them.
    fn headings(markdown: &str) -> BTreeSet<String> {
        let mut anchors = BTreeSet::new();
        for line in prose(markdown).lines() {
            let title = line.trim_start_matches('#');
            if title.len() == line.len() || !title.starts_with(' ') {
                continue;
            }
            let keep = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
            let anchor: String = title
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| keep(*c))
                .collect();
            let anchor = anchor.replace(' ', "-");
            let mut numbered = anchor.clone();
            let mut number = 0;
            while !anchors.insert(numbered.clone()) {
                number += 1;
                numbered = format!("{anchor}-{number}");
            }
        }
        anchors
    }

    #[test]
    fn headings_become_anchors() {
        let text = "# One, two\n## `a.b` and *c*\n## One two\n```\n# no\n```\n";
        let anchors: Vec<String> = headings(text).into_iter().collect();
        assert_eq!(anchors, ["ab-and-c", "one-two", "one-two-1"]);
        assert_eq!(
            links("[a](b.md#c) ![d](e.png)\n```\n[x](y)\n```\n[f](https://g)"),
            ["b.md#c", "e.png"]
        );
    }
}
