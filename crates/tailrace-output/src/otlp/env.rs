//! `OTEL_EXPORTER_OTLP_*` (OTLP exporter specification, Configuration Options) as fallback for what
//! the configuration leaves unset. Takes a lookup, gives the filled configuration and who won each
//! setting; it never reads the environment itself.

use std::path::PathBuf;
use std::time::Duration;

use super::config::{Compression, Origin, OtlpConfig, Protocol, Setting};
use crate::Error;
use crate::text::percent_decode;

/// A variable for logs, then its twin for all signals.
type Pair = [&'static str; 2];

const ENDPOINT: Pair = [
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];
const PROTOCOL: Pair = [
    "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
];
const HEADERS: Pair = [
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
];
const TIMEOUT: Pair = [
    "OTEL_EXPORTER_OTLP_LOGS_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
];
const COMPRESSION: Pair = [
    "OTEL_EXPORTER_OTLP_LOGS_COMPRESSION",
    "OTEL_EXPORTER_OTLP_COMPRESSION",
];
const INSECURE: Pair = [
    "OTEL_EXPORTER_OTLP_LOGS_INSECURE",
    "OTEL_EXPORTER_OTLP_INSECURE",
];
const CERTIFICATE: Pair = [
    "OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
];
const CLIENT_CERTIFICATE: Pair = [
    "OTEL_EXPORTER_OTLP_LOGS_CLIENT_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
];
const CLIENT_KEY: Pair = [
    "OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY",
    "OTEL_EXPORTER_OTLP_CLIENT_KEY",
];

impl OtlpConfig {
    /// Fills what is unset from the environment: `env` gives the value of a variable. The twin with
    /// `_LOGS_` goes before the one without; an empty value counts as unset. TLS files are taken only
    /// for endpoints that are not `http://`. Also gives, in a fixed order, where each setting comes
    /// from. Fails on a variable that would be used and makes no sense.
    pub fn with_env(
        mut self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(OtlpConfig, Vec<Setting>), Error> {
        let mut filler = Filler {
            env,
            settings: Vec::new(),
        };
        filler.endpoint(&mut self);
        filler.fill("protocol", &mut self.protocol, PROTOCOL, protocol)?;
        filler.fill(
            "compression",
            &mut self.compression,
            COMPRESSION,
            compression,
        )?;
        let mut headers = Some(self.headers).filter(|headers| !headers.is_empty());
        filler.fill("headers", &mut headers, HEADERS, pairs)?;
        self.headers = headers.unwrap_or_default();
        filler.fill("timeout", &mut self.timeout, TIMEOUT, milliseconds)?;
        filler.fill("insecure", &mut self.insecure, INSECURE, boolean)?;
        let endpoint = self.logs_endpoint.as_ref().or(self.endpoint.as_ref());
        let encrypted = endpoint.is_some_and(|url| !url.trim_start().starts_with("http://"));
        if encrypted {
            let tls = &mut self.tls;
            filler.fill("tls.ca_file", &mut tls.ca_file, CERTIFICATE, path)?;
            filler.fill(
                "tls.cert_file",
                &mut tls.cert_file,
                CLIENT_CERTIFICATE,
                path,
            )?;
            filler.fill("tls.key_file", &mut tls.key_file, CLIENT_KEY, path)?;
        }
        Ok((self, filler.settings))
    }
}

struct Filler<'a> {
    env: &'a dyn Fn(&str) -> Option<String>,
    settings: Vec<Setting>,
}

impl Filler<'_> {
    fn fill<T>(
        &mut self,
        field: &'static str,
        value: &mut Option<T>,
        variables: Pair,
        read: fn(&str) -> Result<T, String>,
    ) -> Result<(), Error> {
        let origin = match (value.is_some(), self.look(variables)) {
            (true, _) => Origin::Config,
            (false, None) => Origin::Default,
            (false, Some((variable, text))) => {
                *value = Some(read(&text).map_err(|message| Error::env(variable, message))?);
                Origin::Env(variable)
            }
        };
        self.settings.push(Setting { field, origin });
        Ok(())
    }

    /// The two kinds of endpoint are one choice: a base, or the URL as it is.
    fn endpoint(&mut self, config: &mut OtlpConfig) {
        let (field, origin) = if config.logs_endpoint.is_some() {
            ("logs_endpoint", Origin::Config)
        } else if config.endpoint.is_some() {
            ("endpoint", Origin::Config)
        } else if let Some((variable, text)) = self.look(ENDPOINT) {
            let (field, slot) = match variable == ENDPOINT[0] {
                true => ("logs_endpoint", &mut config.logs_endpoint),
                false => ("endpoint", &mut config.endpoint),
            };
            *slot = Some(text);
            (field, Origin::Env(variable))
        } else {
            ("endpoint", Origin::Default)
        };
        self.settings.push(Setting { field, origin });
    }

    fn look(&self, variables: Pair) -> Option<(&'static str, String)> {
        variables.into_iter().find_map(|variable| {
            let text = (self.env)(variable)?.trim().to_owned();
            (!text.is_empty()).then_some((variable, text))
        })
    }
}

fn protocol(text: &str) -> Result<Protocol, String> {
    match text {
        "http/protobuf" => Ok(Protocol::HttpProtobuf),
        "grpc" => Ok(Protocol::Grpc),
        _ => Err(format!("{text} is not one of http/protobuf, grpc")),
    }
}

fn compression(text: &str) -> Result<Compression, String> {
    match text {
        "auto" => Ok(Compression::Auto),
        "zstd" => Ok(Compression::Zstd),
        "gzip" => Ok(Compression::Gzip),
        "none" => Ok(Compression::None),
        _ => Err(format!("{text} is not one of auto, zstd, gzip, none")),
    }
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(milliseconds) if milliseconds > 0 => Ok(Duration::from_millis(milliseconds)),
        _ => Err(format!("{text} is not a number of milliseconds above 0")),
    }
}

fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("{text} is neither true nor false")),
    }
}

fn path(text: &str) -> Result<PathBuf, String> {
    Ok(PathBuf::from(text))
}

/// `key=value,key=value`, values percent-encoded. Values may be secret and are not repeated.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    for (index, part) in text.split(',').enumerate() {
        if part.trim().is_empty() {
            continue;
        }
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| format!("entry {} has no =", index + 1))?;
        let value = percent_decode(value.trim().as_bytes());
        pairs.push((name.trim().to_owned(), value));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::{Compression, Origin, OtlpConfig, Protocol, Setting};
    use crate::Error;

    fn fill(
        config: OtlpConfig,
        variables: &[(&'static str, &str)],
    ) -> Result<(OtlpConfig, Vec<Setting>), Error> {
        config.with_env(&|name| {
            let (_, value) = variables.iter().find(|(variable, _)| *variable == name)?;
            Some((*value).to_owned())
        })
    }

    fn origin(settings: &[Setting], field: &str) -> Origin {
        let setting = settings.iter().find(|setting| setting.field == field);
        setting.unwrap().origin
    }

    #[test]
    fn the_environment_fills_what_is_unset() {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://otlp.test"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "http/protobuf"),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20a%2Cb, x-tenant = one ,",
            ),
            ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "2500"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", ""),
            ("OTEL_EXPORTER_OTLP_INSECURE", "True"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
            ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/client.pem"),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key.pem"),
        ];
        let (config, settings) = fill(OtlpConfig::default(), &variables).unwrap();
        assert_eq!(config.endpoint.as_deref(), Some("https://otlp.test"));
        assert_eq!(config.logs_endpoint, None);
        assert_eq!(config.protocol, Some(Protocol::HttpProtobuf));
        assert_eq!(config.compression, None);
        let headers = [("authorization", "Bearer a,b"), ("x-tenant", "one")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(config.headers, headers);
        assert_eq!(config.timeout, Some(Duration::from_millis(2500)));
        assert_eq!(config.insecure, Some(true));
        assert_eq!(config.tls.ca_file, Some(PathBuf::from("/ca.pem")));
        assert_eq!(config.tls.cert_file, Some(PathBuf::from("/client.pem")));
        assert_eq!(config.tls.key_file, Some(PathBuf::from("/key.pem")));
        let from = |variable| Origin::Env(variable);
        assert_eq!(
            origin(&settings, "endpoint"),
            from("OTEL_EXPORTER_OTLP_ENDPOINT")
        );
        assert_eq!(
            origin(&settings, "protocol"),
            from("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL")
        );
        assert_eq!(origin(&settings, "compression"), Origin::Default);
    }

    #[test]
    fn the_configuration_wins() {
        let config = OtlpConfig {
            endpoint: Some("http://mine.test:4318".to_owned()),
            compression: Some(Compression::Gzip),
            headers: vec![("x-a".to_owned(), "1".to_owned())],
            ..OtlpConfig::default()
        };
        let variables = [
            ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "https://other.test/in"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-b=2"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
        ];
        let (filled, settings) = fill(config.clone(), &variables).unwrap();
        assert_eq!(filled, config);
        for field in ["endpoint", "compression", "headers"] {
            assert_eq!(origin(&settings, field), Origin::Config, "{field}");
        }
    }

    #[test]
    fn a_logs_endpoint_is_taken_as_it_is() {
        let variables = [
            ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "https://otlp.test/in"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://otlp.test"),
        ];
        let (config, settings) = fill(OtlpConfig::default(), &variables).unwrap();
        assert_eq!(
            config.logs_endpoint.as_deref(),
            Some("https://otlp.test/in")
        );
        assert_eq!(config.endpoint, None);
        let expected = Origin::Env("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT");
        assert_eq!(origin(&settings, "logs_endpoint"), expected);
    }

    #[test]
    fn senseless_values_name_their_variable_and_hide_secrets() {
        let cases = [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "snappy"),
            ("OTEL_EXPORTER_OTLP_INSECURE", "yes"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=1,hunter2"),
        ];
        for (variable, value) in cases {
            let error = fill(OtlpConfig::default(), &[(variable, value)]).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(variable), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
