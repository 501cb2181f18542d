//! Why an agent could not start. After the start nothing here is used: bad input is data, and a
//! refused request is held.

use std::path::PathBuf;

use tailrace_config::{Config, Position};

/// Why the agent could not start. The cause is in [`std::error::Error::source`].
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Kind>);

impl Error {
    /// The place in the config that is at fault, if one is: an option of an output, or a file that it names, cannot be used.
    pub fn position<'c>(&self, config: &'c Config) -> Option<&'c Position> {
        let Kind::Output {
            pipeline, output, ..
        } = &*self.0
        else {
            return None;
        };
        let mut outputs = config.pipelines.get(pipeline)?.outputs.iter();
        let output = outputs.find(|known| known.name == *output)?;
        Some(&output.position)
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self(Box::new(kind))
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error("pipeline {pipeline}: the input cannot be read")]
    Input {
        pipeline: String,
        source: tailrace_inputs::Error,
    },
    #[error("pipeline {pipeline}: the metadata of pods cannot be had")]
    Pods {
        pipeline: String,
        source: tailrace_kubernetes::Error,
    },
    #[error("pipeline {pipeline}: output {output} cannot be used")]
    Output {
        pipeline: String,
        output: String,
        source: tailrace_outputs::Error,
    },
    // It names the directory and says what to do.
    #[error(transparent)]
    DataDir { source: tailrace_inputs::Error },
    #[error(
        "the first checkpoint cannot be written to {}, and pipeline {pipeline} leaves out what it finds at its \
         first start: until it can be written, every start would leave out what came since the last; make room \
         there, or set data_dir to a directory that can be written",
        path.display()
    )]
    FirstStart {
        pipeline: String,
        path: PathBuf,
        source: tailrace_inputs::Error,
    },
    #[error("no thread could be started")]
    Thread { source: std::io::Error },
    #[error("the dead-letter file {} cannot be used", path.display())]
    DeadLetterFile {
        path: PathBuf,
        source: std::io::Error,
    },
}
