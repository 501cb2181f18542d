//! Why an output cannot be made from its configuration. Nothing at run time is an error: see
//! [`Outcome`](crate::delivery::Outcome).

use std::path::PathBuf;

/// The configuration of an output is wrong, or a file it names cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Kind);

impl Error {
    /// The configuration key at fault, such as `endpoint` or `tls.ca_file`.
    pub fn field(&self) -> &str {
        match &self.0 {
            Kind::Value { field, .. } => field,
            Kind::File { field, .. } | Kind::Pem { field, .. } => field,
            Kind::Tls { .. } | Kind::NoRoots => "tls",
            Kind::Client { .. } => "type",
        }
    }

    pub(crate) fn value(field: &str, message: impl Into<String>) -> Error {
        Error(Kind::Value {
            field: field.to_owned(),
            message: message.into(),
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error("{field}: {message}")]
    Value { field: String, message: String },
    #[error("{field}: cannot read {}", path.display())]
    File {
        field: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{field}: {} holds no usable PEM block: {expected} is expected", path.display())]
    Pem {
        field: &'static str,
        path: PathBuf,
        expected: &'static str,
        source: Option<rustls::pki_types::pem::Error>,
    },
    #[error("tls: the certificate and key cannot be used")]
    Tls { source: rustls::Error },
    #[error("tls: this machine has no CA certificates; install them or set tls.ca_file")]
    NoRoots,
    #[error("the HTTP client cannot be made")]
    Client { source: reqwest::Error },
}
