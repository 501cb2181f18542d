//! Which proxy a server is reached through: that of the option `proxy`, else that of the environment (`HTTPS_PROXY`,
//! `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`, also in lower case). Connects to nothing.
//!
//! As in Go, the environment's proxy is never used for this machine itself: `localhost` and loopback addresses.

use std::fmt;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Url;
use tailrace_schema::Secret;

use crate::Error;
use crate::text::percent_decode;

/// A proxy over HTTP.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) uri: Uri,
    pub(crate) authorization: Option<HeaderValue>,
    /// The password as the URL has it, and the name and the password.
    pub(super) written: Vec<Vec<u8>>,
}

impl fmt::Debug for Proxy {
    /// Without the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("uri", &self.uri)
            .finish_non_exhaustive()
    }
}

impl Proxy {
    /// Its host and port.
    pub(crate) fn address(&self) -> String {
        let authority = self.uri.authority();
        authority.map(ToString::to_string).unwrap_or_default()
    }

    pub(crate) fn host(&self) -> &str {
        self.uri.host().unwrap_or_default()
    }
}

/// The proxy for `url`. `option` is a URL or `none`; without it, `variable` gives the environment.
///
/// # Errors
///
/// What is set there is not the URL of a proxy over HTTP.
pub(crate) fn proxy_for(
    url: &Url,
    option: Option<&Secret>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Proxy>, Error> {
    match option.map(Secret::expose) {
        Some("none") => return Ok(None),
        Some(proxy) => {
            return read(proxy)
                .map(Some)
                .map_err(|what| Error::value("proxy", what));
        }
        None => {}
    }
    let either = |name: &str| {
        let found = variable(name).or_else(|| variable(&name.to_ascii_lowercase()));
        let found = found.map(|value| value.trim().to_owned());
        found.filter(|value| !value.is_empty())
    };
    let own = if url.scheme() == "https" {
        "HTTPS_PROXY"
    } else {
        "HTTP_PROXY"
    };
    let set = [own, "ALL_PROXY"].map(|name| either(name).map(|value| (name, value)));
    let Some((name, proxy)) = set.into_iter().flatten().next() else {
        return Ok(None);
    };
    if is_this_machine(url) || is_excepted(url, &either("NO_PROXY").unwrap_or_default()) {
        return Ok(None);
    }
    let read = read(&proxy).map(Some);
    read.map_err(|what| Error::value("proxy", format!("the environment variable {name} {what}")))
}

/// The environment of the process.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn read(proxy: &str) -> Result<Proxy, String> {
    let with_scheme = if proxy.contains("://") {
        proxy.to_owned()
    } else {
        format!("http://{proxy}")
    };
    // The text may hold a password, and is not repeated.
    let wrong = || {
        "is not the URL of a proxy, such as http://proxy.example.com:3128, nor `none`".to_owned()
    };
    let url = Url::parse(&with_scheme).map_err(|_| wrong())?;
    if url.scheme() != "http" {
        return Err(format!(
            "names a proxy over {}; only proxies over http:// are supported (TLS to the server passes through them)",
            url.scheme()
        ));
    }
    let host = url.host_str().ok_or_else(wrong)?;
    let port = url.port_or_known_default().ok_or_else(wrong)?;
    let uri = Uri::try_from(format!("http://{host}:{port}")).map_err(|_| wrong())?;
    let decoded = |text: &str| percent_decode(text.as_bytes());
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    let authorization = has_credentials.then(|| {
        let pair = format!(
            "{}:{}",
            decoded(url.username()),
            decoded(url.password().unwrap_or_default())
        );
        let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)))
            .expect("base64 is a header value");
        value.set_sensitive(true);
        value
    });
    let password = url.password().unwrap_or_default();
    let written = match password {
        "" => Vec::new(),
        password => vec![
            password.into(),
            format!("{}:{password}", url.username()).into(),
        ],
    };
    Ok(Proxy {
        uri,
        authorization,
        written,
    })
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host
        .parse()
        .is_ok_and(|address: IpAddr| address.is_loopback());
    is_loopback || host == "localhost" || host.ends_with(".localhost")
}

/// Whether `NO_PROXY` names the host: a name, a domain (`.example.com`, `*.example.com`), an address, a network, or `*`, each
/// perhaps with a port.
fn is_excepted(url: &Url, no_proxy: &str) -> bool {
    let port = url.port_or_known_default();
    let entries = no_proxy.split([',', ' ']).filter_map(|entry| {
        let entry = entry.trim();
        let entry = match entry.rsplit_once(':') {
            Some((host, of)) if !host.contains(':') || host.ends_with(']') => {
                (of.parse().ok() == port).then_some(host)?
            }
            _ => entry,
        };
        let entry = entry.trim_matches(['[', ']']);
        Some(
            entry
                .strip_prefix('*')
                .filter(|rest| !rest.is_empty())
                .unwrap_or(entry),
        )
    });
    let entries: Vec<&str> = entries.collect();
    let all = Matcher::builder()
        .all("http://proxy")
        .no(entries.join(","))
        .build();
    let uri = Uri::try_from(format!(
        "{}://{}",
        url.scheme(),
        url.host_str().unwrap_or_default()
    ));
    uri.is_ok_and(|uri| all.intercept(&uri).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let url = Url::parse(url).unwrap();
        let variable = |name: &str| {
            let found = variables.iter().find(|(set, _)| *set == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let found = proxy_for(&url, None, variable).map_err(|error| error.to_string())?;
        Ok(found.map(|proxy| proxy.address()))
    }

    #[test]
    fn each_scheme_has_its_variable_and_both_have_all() {
        const ALL: (&str, &str) = ("ALL_PROXY", "http://all:1");
        type Case = (
            &'static str,
            &'static [(&'static str, &'static str)],
            Option<&'static str>,
        );
        let cases: [Case; 8] = [
            ("http://h", &[], None),
            (
                "http://h",
                &[("HTTP_PROXY", "http://p:3128"), ALL],
                Some("p:3128"),
            ),
            ("http://h", &[("http_proxy", "p:3128")], Some("p:3128")),
            (
                "https://h",
                &[("HTTP_PROXY", "http://p:3128"), ALL],
                Some("all:1"),
            ),
            (
                "https://h",
                &[("https_proxy", "http://u:p@p")],
                Some("p:80"),
            ),
            ("https://h", &[("HTTPS_PROXY", " ")], None),
            ("http://localhost:4318", &[ALL], None),
            ("http://[::1]:4318", &[ALL], None),
        ];
        for (url, variables, expected) in cases {
            assert_eq!(
                check(url, variables).unwrap().as_deref(),
                expected,
                "{url} {variables:?}"
            );
        }
    }

    #[test]
    fn no_proxy_names_hosts_domains_networks_ports_and_all() {
        let cases = [
            ("https://a.example.com", "example.com", true),
            ("https://a.example.com", ".example.com", true),
            ("https://a.example.com", "*.example.com", true),
            ("https://example.com", ".example.com", true),
            ("https://notexample.com", "example.com", false),
            ("https://10.1.2.3:4318", "10.0.0.0/8", true),
            ("https://11.1.2.3:4318", "10.0.0.0/8, 192.168.0.0/16", false),
            ("https://[fd00::1]:4318", "fd00::/8", true),
            ("https://otel.ns.svc:4318", "other, otel.ns.svc:4318", true),
            ("https://otel.ns.svc:4318", "otel.ns.svc:443", false),
            ("https://h", "*", true),
            ("https://h", "", false),
            ("https://h", ",, ,", false),
        ];
        for (url, no_proxy, expected) in cases {
            let found = check(url, &[("ALL_PROXY", "p:1"), ("no_proxy", no_proxy)]);
            assert_eq!(found.unwrap().is_none(), expected, "{url} {no_proxy}");
        }
    }

    #[test]
    fn what_is_no_proxy_over_http_is_refused_without_its_text() {
        for wrong in [
            "http://u:hunter2@",
            "socks5://u:hunter2@p:1",
            "http://u:hunter2@h:x",
            "https://u:hunter2@p",
        ] {
            let error = check("https://h", &[("HTTPS_PROXY", wrong)]).unwrap_err();
            assert!(
                error.contains("HTTPS_PROXY") && !error.contains("hunter2"),
                "{error}"
            );
        }
        let url = Url::parse("https://localhost").unwrap();
        let option =
            |text: &str| proxy_for(&url, Some(&Secret::new(text)), |_| Some("p:1".to_owned()));
        assert!(option("none").unwrap().is_none());
        let proxy = option("http://us%40er:pass%20word@p:3128")
            .unwrap()
            .unwrap();
        let authorization = proxy.authorization.as_ref().unwrap();
        assert_eq!(authorization, "Basic dXNAZXI6cGFzcyB3b3Jk");
        assert!(!format!("{proxy:?}").contains("dXNA"));
        assert!(option("nothing at all").is_err());
    }
}
