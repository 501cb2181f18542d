//! Reads the options of an OTLP output: from the configuration, then from the environment, and checks that they go together.

use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;

use super::config::{OtlpOutput, Protocol, default_endpoint};
use super::environment;
use crate::http_client::options;

/// Reads the options of one output, and those that only the environment sets. Returns `None` after it reported what is
/// wrong.
pub(super) fn read(node: &Node, reader: &mut Reader<'_>, common: &[&str]) -> Option<OtlpOutput> {
    let completed = environment::complete(node, reader);
    let mut output: OtlpOutput = reader.section(&completed, common)?;
    environment::drop_tls_without_use(&mut output, node);
    let sound = check(&output, node, reader);
    if output.endpoint.is_none() && output.logs_endpoint.is_none() {
        output.endpoint = Some(default_endpoint(output.protocol).to_owned());
    }
    sound.then_some(output)
}

/// Checks what must hold between the options of one output. Returns whether it does.
fn check(output: &OtlpOutput, node: &Node, reader: &mut Reader<'_>) -> bool {
    let mut complaints = Vec::new();
    let mut complain = |path: &[&str], what: String, hint: Option<String>| {
        let key = path.join(".");
        let message = format!("{}: {what}", reader.path_of(&key));
        complaints.push(node.nearest(path).diagnostic(message).with_hint(hint));
    };
    if output.endpoint.is_some() && output.logs_endpoint.is_some() {
        let hint =
            "`endpoint` is a base URL, `logs_endpoint` is taken as it is; keep one".to_owned();
        complain(
            &["logs_endpoint"],
            "`endpoint` is given too".to_owned(),
            Some(hint),
        );
    }
    if output.protocol == Protocol::Grpc && has_path(&output.url()) {
        let option = match output.logs_endpoint {
            Some(_) => "logs_endpoint",
            None => "endpoint",
        };
        let what = "with `protocol: grpc` it is scheme, host and port only, without a path";
        complain(&[option], what.to_owned(), None);
    }
    let sound = complaints.is_empty();
    complaints
        .into_iter()
        .for_each(|complaint| reader.report(complaint));
    sound & options::check(&output.retry, &output.tls, &output.url(), node, reader)
}

/// Returns whether a URL has anything after host and port.
fn has_path(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.trim_end_matches('/').contains(['/', '?'])
}
