//! Any output, so that its user need not tell them apart. It adds nothing to them.

use std::sync::Arc;

use crate::deliver::{Patience, Way};
use crate::local::PATIENCE;
use crate::outcome::Answered;
use crate::search::Search;
use crate::{DiscardOutput, Encoding, FileOutput, Otlp, Payload, StdoutOutput};

/// One way out.
pub enum Output {
    /// An OTLP endpoint.
    Otlp(Arc<Otlp>),
    /// Standard output.
    Stdout(StdoutOutput),
    /// A file.
    File(FileOutput),
    /// Nowhere.
    Discard(DiscardOutput),
}

/// Local outputs take lines as they are.
static AS_IT_IS: Search = Search::fixed(Encoding::Identity);

impl Output {
    /// The encoding new payloads should have.
    pub fn encoding(&self) -> Encoding {
        self.search().preferred()
    }
}

impl Way for Output {
    async fn attempt(&self, payload: &Payload) -> Answered {
        match self {
            Output::Otlp(otlp) => Way::attempt(&**otlp, payload).await,
            Output::Stdout(stdout) => stdout.attempt(payload).await,
            Output::File(file) => file.attempt(payload).await,
            Output::Discard(discard) => discard.attempt(),
        }
    }

    fn search(&self) -> &Search {
        match self {
            Output::Otlp(otlp) => otlp.search(),
            Output::Stdout(_) | Output::File(_) | Output::Discard(_) => &AS_IT_IS,
        }
    }

    fn patience(&self) -> &Patience {
        match self {
            Output::Otlp(otlp) => otlp.patience(),
            Output::Stdout(_) | Output::File(_) | Output::Discard(_) => &PATIENCE,
        }
    }
}
