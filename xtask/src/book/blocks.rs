//! The fenced code blocks of a Markdown page.

/// One block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The line of the opening fence, from 1.
    pub(super) line: usize,
    /// The first word behind the fence.
    pub(super) language: String,
    /// The other words.
    pub(super) words: Vec<String>,
    /// Its lines, each with its line end, without the indentation of the fence.
    pub(super) text: String,
}

/// All blocks in order. One that is never closed ends with the page.
pub(super) fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut indentation: Option<usize> = None;
    for (index, line) in markdown.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (indentation, fence) {
            (None, Some(info)) => {
                let mut words = info.split_whitespace().map(str::to_owned);
                blocks.push(Block {
                    line: index + 1,
                    language: words.next().unwrap_or_default(),
                    words: words.collect(),
                    text: String::new(),
                });
                indentation = Some(line.len() - line.trim_start().len());
            }
            (Some(_), Some("")) => indentation = None,
            (Some(width), _) => {
                if let Some(block) = blocks.last_mut() {
                    let blank = line.len() - line.trim_start().len();
                    block.text.push_str(&line[width.min(blank)..]);
                    block.text.push('\n');
                }
            }
            (None, None) => {}
        }
    }
    blocks
}

/// The page without its blocks, line for line: what is in them is empty.
pub(super) fn prose(markdown: &str) -> String {
    let mut inside = false;
    let mut text = String::new();
    for line in markdown.lines() {
        let is_fence = line.trim_start().starts_with("```");
        if !inside && !is_fence {
            text.push_str(line);
        }
        text.push('\n');
        inside ^= is_fence;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_line_words_and_text() {
        let markdown = "a\n```sh\nb\n```\n- c\n  ```yaml  d.yaml\n  e:\n    f: 1\n\n  ```\n```\ng";
        let blocks = blocks(markdown);
        let seen: Vec<(usize, &str, usize, &str)> = blocks
            .iter()
            .map(|block| {
                (
                    block.line,
                    block.language.as_str(),
                    block.words.len(),
                    block.text.as_str(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (2, "sh", 0, "b\n"),
                (6, "yaml", 1, "e:\n  f: 1\n\n"),
                (11, "", 0, "g\n")
            ]
        );
        assert_eq!(prose("a\n```\nb\n```\nc\n"), "a\n\n\n\nc\n");
    }
}
