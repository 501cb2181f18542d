//! Checks the URL of a server. It never resolves a name.

use reqwest::Url;
use tailrace_schema::kind::Kind;
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;
use tailrace_schema::section::Shape;

/// A URL to which nothing is added.
pub struct Endpoint;

/// A URL to which `/v1/logs` may be added.
pub(crate) struct BaseEndpoint;

impl Kind for Endpoint {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text("URL")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
        read_url(node, reader, check)
    }
}

impl Kind for BaseEndpoint {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text("URL")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
        read_url(node, reader, |url| {
            check(url).and_then(|()| check_base(url))
        })
    }
}

type Complaint = (String, Option<String>);

fn read_url(
    node: &Node,
    reader: &mut Reader<'_>,
    check: impl FnOnce(&str) -> Result<(), Complaint>,
) -> Option<String> {
    let resolved = reader.scalar(node, "a URL such as `http://localhost:4318`")?;
    match check(&resolved.text) {
        Ok(()) => Some(resolved.text),
        Err((what, hint)) if resolved.is_hidden && what == WITH_USER => {
            let message = format!("{}: {what}", reader.path());
            reader.report(node.diagnostic(message).without_snippet().with_hint(hint));
            None
        }
        Err(_) if resolved.is_hidden => {
            reader.expected(
                node,
                "a URL such as `http://localhost:4318`",
                Some(&resolved),
            );
            None
        }
        Err((what, hint)) if resolved.text.contains('@') => {
            // What stands before the `@` may be a password.
            let message = format!("{}: {what}", reader.path());
            reader.report(node.diagnostic(message).without_snippet().with_hint(hint));
            None
        }
        Err((what, hint)) => {
            reader.refuse(node, Some(&resolved), what, hint);
            None
        }
    }
}

/// What is said of such a URL, without any of its text.
const WITH_USER: &str = "a URL with a user or password";

fn check(url: &str) -> Result<(), Complaint> {
    let Some((scheme, rest)) = url.split_once("://") else {
        let hint = plausible_authority(url).then(|| format!("did you mean `http://{url}`?"));
        let hint = hint.unwrap_or_else(|| "such as `http://localhost:4318`".to_owned());
        return Err((
            format!("`{url}` is not a URL: it needs `http://` or `https://`"),
            Some(hint),
        ));
    };
    if scheme != "http" && scheme != "https" {
        return Err((
            format!("`{scheme}://` is not known, only `http://` and `https://`"),
            None,
        ));
    }
    if let Some(c) = url
        .chars()
        .find(|c| c.is_whitespace() || c.is_control() || !c.is_ascii())
    {
        return Err((format!("a URL cannot hold {c:?}"), None));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        let hint = "send credentials in `headers`, such as `authorization`".to_owned();
        return Err((WITH_USER.to_owned(), Some(hint)));
    }
    if !plausible_authority(authority) {
        return Err((
            format!("`{authority}` is not a host, or a host and a port"),
            None,
        ));
    }
    if rest.contains('#') {
        return Err(("a URL to send to has no `#`".to_owned(), None));
    }
    match Url::parse(url) {
        Ok(_) => Ok(()),
        Err(error) => Err((format!("`{url}` is not a URL: {error}"), None)),
    }
}

fn check_base(url: &str) -> Result<(), Complaint> {
    let path = url.trim_end_matches('/');
    if let Some(base) = path.strip_suffix("/v1/logs") {
        let hint = format!("write `endpoint: {base}`, or `logs_endpoint: {url}`");
        return Err((
            "`endpoint` is a base URL, to which `/v1/logs` is added".to_owned(),
            Some(hint),
        ));
    }
    if url.contains('?') {
        let hint = "`logs_endpoint` is taken as it is".to_owned();
        return Err(("a base URL has no `?`".to_owned(), Some(hint)));
    }
    Ok(())
}

/// `host`, `host:port`, `[v6]` or `[v6]:port`.
fn plausible_authority(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, port)) => match port.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None => return false,
            },
            None => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let host_fits = if text.starts_with('[') {
        host.parse::<std::net::Ipv6Addr>().is_ok()
    } else {
        !host.is_empty()
            && host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    host_fits
        && port.is_none_or(|port| digits(port) && port.parse::<u16>().is_ok_and(|port| port > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let good = [
            "http://localhost:4318",
            "https://otel.example.com",
            "http://10.0.0.1:4318/",
            "https://[::1]:4318/base",
            "http://otel_collector.ns.svc:4318",
            "https://h/x?y=z",
        ];
        for url in good {
            assert_eq!(check(url), Ok(()), "{url}");
        }
        let bad = [
            "",
            "localhost:4318",
            "http://",
            "http://:4318",
            "http://h:0",
            "http://h:65536",
            "http://h:",
            "http://h:+1",
            "http://[::1",
            "http://[::1]x",
            "http://[zz]",
            "ftp://h",
            "http://a b",
            "http://u:p@h",
            "http://h/#f",
            "http://hé",
        ];
        for url in bad {
            assert!(check(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_base_url_has_no_signal_path() {
        assert_eq!(check_base("http://h/base"), Ok(()));
        assert!(check_base("http://h/v1/logs").is_err());
        assert!(check_base("http://h/v1/logs/").is_err());
        assert!(check_base("http://h/?a=b").is_err());
    }
}
