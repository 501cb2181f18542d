//! Where requests go: the URL from the configuration, checked. Takes strings, gives a URL or an error
//! that says what to write instead; it resolves no name.

use reqwest::Url;

use super::config::{OtlpConfig, Protocol};
use crate::Error;

const LOGS_PATH: &str = "/v1/logs";

/// The URL for requests: with its path for HTTP, scheme and host for gRPC.
pub(super) fn resolve(config: &OtlpConfig) -> Result<Url, Error> {
    let protocol = config.protocol();
    let (field, text) = match (&config.logs_endpoint, &config.endpoint, protocol) {
        (Some(_), Some(_), _) => {
            let message = "cannot stand beside endpoint: remove one of them";
            return Err(Error::value("logs_endpoint", message));
        }
        (Some(text), None, _) => ("logs_endpoint", text.as_str()),
        (None, Some(text), _) => ("endpoint", text.as_str()),
        (None, None, Protocol::HttpProtobuf) => ("endpoint", "http://localhost:4318"),
        (None, None, Protocol::Grpc) => ("endpoint", "http://localhost:4317"),
    };
    let fail = |message: String| Err(Error::value(field, message));
    let text = with_scheme(field, text.trim(), config)?;
    let mut url = match Url::parse(&text) {
        Ok(url) => url,
        Err(error) => return fail(format!("{} is not a URL: {error}", show(&text))),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return fail("holds credentials: put them into headers (authorization)".to_owned());
    }
    if !matches!(url.scheme(), "http" | "https") {
        return fail(format!(
            "{text} has the scheme {}: use http or https",
            url.scheme()
        ));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return fail(format!("{text} has no host"));
    }
    if url.fragment().is_some() {
        return fail(format!("{text} has a fragment (#): remove it"));
    }
    match protocol {
        Protocol::Grpc => {
            if url.path() != "/" || url.query().is_some() {
                return fail(format!(
                    "{text} has a path: with protocol grpc it is scheme, host and port only"
                ));
            }
        }
        Protocol::HttpProtobuf if field == "endpoint" => {
            if url.query().is_some() {
                return fail(format!(
                    "{text} has a query, but {LOGS_PATH} is added to it: use logs_endpoint"
                ));
            }
            let base = url.path().trim_end_matches('/');
            if base.ends_with(LOGS_PATH) {
                return fail(format!(
                    "{text} already ends in {LOGS_PATH}, which is added to it: \
                     remove it, or use logs_endpoint"
                ));
            }
            let path = format!("{base}{LOGS_PATH}");
            url.set_path(&path);
        }
        Protocol::HttpProtobuf => {}
    }
    Ok(url)
}

/// gRPC endpoints are often `host:port`; elsewhere a missing scheme is a mistake.
fn with_scheme(field: &str, text: &str, config: &OtlpConfig) -> Result<String, Error> {
    if text.contains("://") {
        return Ok(text.to_owned());
    }
    match config.protocol() {
        Protocol::Grpc => {
            let scheme = match config.insecure {
                Some(true) => "http",
                Some(false) | None => "https",
            };
            Ok(format!("{scheme}://{text}"))
        }
        Protocol::HttpProtobuf => {
            let text = show(text);
            let message = format!("{text} has no scheme: write http://{text} or https://{text}");
            Err(Error::value(field, message))
        }
    }
}

/// The text, unless it may hold a password.
fn show(text: &str) -> &str {
    match text.contains('@') {
        true => "the value",
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{OtlpConfig, Protocol, resolve};

    fn check(protocol: Protocol, field: &str, text: &str) -> String {
        let mut config = OtlpConfig {
            protocol: Some(protocol),
            ..OtlpConfig::default()
        };
        match field {
            "endpoint" => config.endpoint = Some(text.to_owned()),
            _ => config.logs_endpoint = Some(text.to_owned()),
        }
        match resolve(&config) {
            Ok(url) => url.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn a_base_gets_the_path_of_logs() {
        let cases = [
            ("http://localhost:4318", "http://localhost:4318/v1/logs"),
            ("https://otlp.test/", "https://otlp.test/v1/logs"),
            ("https://otlp.test/a/b/", "https://otlp.test/a/b/v1/logs"),
            ("http://[::1]:4318", "http://[::1]:4318/v1/logs"),
        ];
        for (text, expected) in cases {
            assert_eq!(check(Protocol::HttpProtobuf, "endpoint", text), expected);
        }
        let as_it_is = "https://otlp.test/logs?tenant=1";
        let url = check(Protocol::HttpProtobuf, "logs_endpoint", as_it_is);
        assert_eq!(url, as_it_is);
    }

    #[test]
    fn grpc_takes_a_host_with_or_without_a_scheme() {
        let cases = [
            ("http://localhost:4317", "http://localhost:4317/"),
            ("otlp.test:4317", "https://otlp.test:4317/"),
        ];
        for (text, expected) in cases {
            assert_eq!(check(Protocol::Grpc, "endpoint", text), expected);
        }
        let config = OtlpConfig {
            endpoint: Some("localhost:4317".to_owned()),
            protocol: Some(Protocol::Grpc),
            insecure: Some(true),
            ..OtlpConfig::default()
        };
        assert_eq!(resolve(&config).unwrap().as_str(), "http://localhost:4317/");
    }

    #[test]
    fn defaults_are_the_ports_of_otlp() {
        let url = resolve(&OtlpConfig::default()).unwrap();
        assert_eq!(url.as_str(), "http://localhost:4318/v1/logs");
        let config = OtlpConfig {
            protocol: Some(Protocol::Grpc),
            ..OtlpConfig::default()
        };
        assert_eq!(resolve(&config).unwrap().as_str(), "http://localhost:4317/");
    }

    #[test]
    fn mistakes_are_named_with_what_to_do() {
        let http = Protocol::HttpProtobuf;
        let cases = [
            (
                http,
                "endpoint",
                "localhost:4318",
                "has no scheme: write http://localhost:4318",
            ),
            (
                http,
                "endpoint",
                "http://h/v1/logs",
                "already ends in /v1/logs",
            ),
            (
                http,
                "endpoint",
                "http://h/x/v1/logs/",
                "already ends in /v1/logs",
            ),
            (http, "endpoint", "http://h/?a=1", "use logs_endpoint"),
            (http, "endpoint", "ftp://h", "use http or https"),
            (http, "endpoint", "http://", "is not a URL"),
            (http, "logs_endpoint", "http://h/#x", "has a fragment"),
            (
                http,
                "endpoint",
                "http://user:hunter2@h",
                "put them into headers",
            ),
            (http, "endpoint", "user:hunter2@h", "has no scheme"),
            (http, "endpoint", "http://user:hunter2@h:x", "is not a URL"),
            (
                Protocol::Grpc,
                "endpoint",
                "http://h:4317/v1/logs",
                "has a path",
            ),
        ];
        for (protocol, field, text, expected) in cases {
            let error = check(protocol, field, text);
            assert!(
                error.starts_with(&format!("error: {field}: ")),
                "{text}: {error}"
            );
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn two_endpoints_are_one_too_many() {
        let config = OtlpConfig {
            endpoint: Some("http://a".to_owned()),
            logs_endpoint: Some("http://b".to_owned()),
            ..OtlpConfig::default()
        };
        assert!(resolve(&config).is_err());
    }
}
