//! Any output, so that its user need not tell them apart. It adds nothing to them.

use crate::{
    Delivered, DiscardOutput, Encoding, FileOutput, Observer, Otlp, Payload, Recode, StdoutOutput,
};

/// One way out.
pub enum Output {
    /// An OTLP endpoint.
    Otlp(Box<Otlp>),
    /// Standard output.
    Stdout(StdoutOutput),
    /// A file.
    File(FileOutput),
    /// Nowhere.
    Discard(DiscardOutput),
}

impl Output {
    /// The encoding new payloads should have.
    pub fn encoding(&self) -> Encoding {
        match self {
            Output::Otlp(otlp) => otlp.encoding(),
            Output::Stdout(_) | Output::File(_) | Output::Discard(_) => Encoding::Identity,
        }
    }

    /// Sends `payload` until it is accepted; dropping the future stops it.
    pub async fn deliver(
        &self,
        payload: Payload,
        recode: &Recode<'_>,
        observer: &dyn Observer,
    ) -> Delivered {
        match self {
            Output::Otlp(otlp) => otlp.deliver(payload, recode, observer).await,
            Output::Stdout(stdout) => stdout.deliver(payload, recode, observer).await,
            Output::File(file) => file.deliver(payload, recode, observer).await,
            Output::Discard(discard) => discard.deliver(payload, observer),
        }
    }
}
