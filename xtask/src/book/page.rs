//! One page of the book, and what its blocks are for; `run.rs` does it. The words behind a fence say so:
//!
//! | fence | what happens |
//! |---|---|
//! | `sh` | bash runs it, with `-euo pipefail`; variables and background jobs outlive it until the end of the page; `cargo run --release --` is the agent |
//! | `sh needs-cluster` | it is not run, and counted; also `needs-root`, `needs-clone`, `needs-network` |
//! | `sh needs-collector` | it is run where the OpenTelemetry Collector of the tests was built, as `otelcol` |
//! | `LANGUAGE NAME.EXT` | its text is written to the file of this name |
//! | `LANGUAGE output` | its text is what the block `sh` before it printed; a line `...` stands for any lines |
//! | `yaml`, with `pipelines:` | it is a config, which `tailrace validate --no-environment` accepts; variables without a default are set |
//! | any other | nothing |

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

use super::blocks::{Block, blocks};

const NEEDS: &str = "needs-";
const COLLECTOR: &str = "collector";
const NEEDED: [&str; 5] = ["cluster", "root", "clone", "network", COLLECTOR];
/// No line of a page is this one.
pub(super) const END: &str = "END_OF_BLOCK_OF_THE_BOOK";

/// What a page does, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) actions: Vec<(usize, Action)>,
    /// How many blocks need something that is not here.
    needs: BTreeMap<&'static str, usize>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    Write {
        name: String,
        text: String,
    },
    Validate {
        config: String,
    },
    Run {
        script: String,
    },
    /// Compares with what the block at this line printed.
    Expect {
        of: usize,
        text: String,
    },
}

/// What the last block `sh` printed.
enum Printed {
    Nothing,
    /// It is not run here.
    LeftOut,
    At(usize),
}

impl Page {
    /// Reads a page; with a Collector, what needs it is run.
    ///
    /// # Errors
    /// When the words behind a fence mean nothing, or a config, a script or a file cannot be told apart.
    pub(super) fn read(markdown: &str, has_collector: bool) -> Result<Page> {
        let mut page = Page::default();
        let mut printed = Printed::Nothing;
        for block in blocks(markdown) {
            let line = block.line;
            page.take(block, has_collector, &mut printed)
                .with_context(|| format!("line {line}"))?;
        }
        Ok(page)
    }

    fn take(&mut self, block: Block, has_collector: bool, printed: &mut Printed) -> Result<()> {
        let Block {
            line,
            language,
            words,
            text,
        } = block;
        if text.lines().any(|line| line == END) {
            bail!("{END} in a block");
        }
        let word = match words.as_slice() {
            [] => "",
            [word] => word.as_str(),
            _ => bail!("only one word may follow `{language}`"),
        };
        if language == "yaml" && text.lines().any(|line| line.starts_with("pipelines:")) {
            self.actions.push((
                line,
                Action::Validate {
                    config: text.clone(),
                },
            ));
        }
        let is_run =
            word.is_empty() || (has_collector && word.strip_prefix(NEEDS) == Some(COLLECTOR));
        match (language.as_str(), word) {
            ("sh", _) if is_run => {
                *printed = Printed::At(line);
                self.actions.push((line, Action::Run { script: text }));
            }
            ("sh", word) => {
                let need = NEEDED
                    .into_iter()
                    .find(|need| word.strip_prefix(NEEDS) == Some(need));
                let Some(need) = need else {
                    bail!(
                        "`sh {word}`: a script is run, or needs one of {}",
                        NEEDED.join(", ")
                    );
                };
                *self.needs.entry(need).or_default() += 1;
                *printed = Printed::LeftOut;
            }
            (_, "") => {}
            (_, "output") => match *printed {
                Printed::Nothing => bail!("no block `sh` printed this"),
                Printed::LeftOut => {}
                Printed::At(of) => self.actions.push((line, Action::Expect { of, text })),
            },
            (_, name) if is_file_name(name) => {
                let name = name.to_owned();
                self.actions.push((line, Action::Write { name, text }));
            }
            (language, word) => bail!("`{language} {word}` means nothing: a file is NAME.EXT"),
        }
        Ok(())
    }

    /// True when nothing is run and nothing is left out.
    pub(super) fn is_idle(&self) -> bool {
        let acts = |action: &Action| !matches!(action, Action::Write { .. });
        self.needs.is_empty() && !self.actions.iter().any(|(_, action)| acts(action))
    }

    /// What is run and what is not, such as `4 scripts, 2 configs, 1 output; not run: 2 need a cluster`.
    pub(super) fn summary(&self) -> String {
        let count =
            |is: fn(&Action) -> bool| self.actions.iter().filter(|(_, action)| is(action)).count();
        let mut text = format!(
            "{} scripts, {} configs, {} outputs",
            count(|action| matches!(action, Action::Run { .. })),
            count(|action| matches!(action, Action::Validate { .. })),
            count(|action| matches!(action, Action::Expect { .. })),
        );
        let needs: Vec<String> = self
            .needs
            .iter()
            .map(|(need, count)| format!("{need} {count}"))
            .collect();
        if !needs.is_empty() {
            text.push_str(&format!(
                "; not run, for what they need: {}",
                needs.join(", ")
            ));
        }
        text
    }
}

/// A relative path with an extension, without a step upwards and without characters that a shell knows.
fn is_file_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
    name.contains('.') && name.chars().all(plain) && !name.starts_with('/') && !name.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_what_its_fences_say() {
        let page = Page::read(
            "```yaml a.yaml\npipelines: {}\n```\n```sh\necho hi\n```\n```text output\nhi\n```\n\
             ```sh needs-collector\nx\n```\n```text output\ny\n```\n```json\n{}\n```\n",
            false,
        )
        .unwrap();
        let expected = [
            (
                1,
                Action::Validate {
                    config: "pipelines: {}\n".to_owned(),
                },
            ),
            (
                1,
                Action::Write {
                    name: "a.yaml".to_owned(),
                    text: "pipelines: {}\n".to_owned(),
                },
            ),
            (
                4,
                Action::Run {
                    script: "echo hi\n".to_owned(),
                },
            ),
            (
                7,
                Action::Expect {
                    of: 4,
                    text: "hi\n".to_owned(),
                },
            ),
        ];
        assert_eq!(page.actions, expected);
        assert_eq!(
            page.summary(),
            "1 scripts, 1 configs, 1 outputs; not run, for what they need: collector 1"
        );
        assert!(Page::read("```text\nx\n```\n", false).unwrap().is_idle());
    }

    #[test]
    fn fences_that_mean_nothing_are_refused() {
        for page in [
            "```sh later\nx\n```",
            "```text output\nx\n```",
            "```yaml ../a.yaml\n```",
            "```yaml /a.yaml\n```",
            "```yaml word\n```",
            "```yaml a.yaml b\n```",
            "```text\nEND_OF_BLOCK_OF_THE_BOOK\n```",
        ] {
            assert!(Page::read(page, false).is_err(), "{page}");
        }
    }
}
