//! Options that every output over HTTP has, and the checks between them.

use std::path::PathBuf;
use std::time::Duration;

use tailrace_schema::kind::{FilePath, HOUR, Text, Time};
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;

use crate::delivery::RetryPolicy;

section! {
    /// Pauses between attempts grow from `initial` to `max`, with jitter. A server's Retry-After counts as well.
    pub struct Retry {
        /// The pause after the first failed attempt.
        initial: Duration = Time<1, { HOUR }>, default("1s");
        /// The longest pause.
        max: Duration = Time<1, { HOUR }>, default("30s");
    }
}

section! {
    /// Certificates, as PEM files. By default, the server's certificate is checked against the system's authorities.
    pub struct Tls {
        /// Authorities that may sign the server's certificate, instead of the system's.
        ca_file: Option<PathBuf> = FilePath, unset("the system's authorities", "/etc/tailrace/ca.pem");
        /// The client's certificate, for servers that require one. It needs `key_file`.
        cert_file: Option<PathBuf> = FilePath, unset("no client certificate", "/etc/tailrace/client.pem");
        /// The key of the client's certificate.
        key_file: Option<PathBuf> = FilePath, unset("no client certificate", "/etc/tailrace/client.key");
        /// The name that the server's certificate must carry.
        server_name: Option<String> = Text, unset("the host of the endpoint", "otel.example.com");
    }
}

section_defaults!(Retry, Tls);

const BOTH: &str = "a client certificate takes both files";

impl Retry {
    /// The retry policy of these options.
    pub(crate) fn policy(&self) -> RetryPolicy {
        RetryPolicy::between(self.initial, self.max)
    }
}

impl Tls {
    /// The files that these options name.
    pub(crate) fn files(&self) -> Vec<&PathBuf> {
        let files = [&self.ca_file, &self.cert_file, &self.key_file];
        files.into_iter().flatten().collect()
    }
}

/// Checks that the options are consistent. Returns whether they are, and reports each fault.
pub(crate) fn check(
    retry: &Retry,
    tls: &Tls,
    url: &str,
    node: &Node,
    reader: &mut Reader<'_>,
) -> bool {
    let mut complaints = Vec::new();
    let mut complain = |path: &[&str], what: &str, hint: Option<&str>| {
        let message = format!("{}: {what}", reader.path_of(&path.join(".")));
        let complaint = node.nearest(path).diagnostic(message);
        complaints.push(complaint.with_hint(hint.map(str::to_owned)));
    };
    if retry.initial > retry.max {
        let hint = "the waits grow from `initial` to `max`";
        complain(&["retry", "initial"], "longer than retry.max", Some(hint));
    }
    match (&tls.cert_file, &tls.key_file) {
        (Some(_), None) => complain(&["tls", "cert_file"], "`key_file` is missing", Some(BOTH)),
        (None, Some(_)) => complain(&["tls", "key_file"], "`cert_file` is missing", Some(BOTH)),
        _ => {}
    }
    let wants_tls = node.get("tls").is_some_and(|tls| !tls.is_null());
    let has_files = tls.ca_file.is_some() || tls.cert_file.is_some();
    if wants_tls && url.starts_with("http://") && has_files {
        let what = "the endpoint does not use TLS: it begins with `http://`";
        complain(&["tls"], what, Some("write `https://`, or remove `tls`"));
    }
    let is_sound = complaints.is_empty();
    complaints
        .into_iter()
        .for_each(|complaint| reader.report(complaint));
    is_sound
}
