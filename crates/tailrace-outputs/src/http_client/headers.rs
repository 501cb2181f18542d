//! Headers that a user adds to requests: what they may be, and how they are sent. A value is a secret: no error repeats
//! it.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName as Name, HeaderValue as Value};
use tailrace_schema::Secret;
use tailrace_schema::kind::Key;

use crate::Error;

/// Headers that the transport sets itself, besides all of gRPC's.
const TAKEN: [&str; 11] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Names of HTTP headers and gRPC metadata, kept in lower case.
pub(crate) struct HeaderName;

impl Key for HeaderName {
    const WHAT: &'static str = "header";

    fn check(key: &str) -> Result<String, (String, Option<String>)> {
        let Ok(name) = Name::try_from(key) else {
            let hint = "letters, digits and `-` make a header name".to_owned();
            return Err((format!("`{key}` is not a header name"), Some(hint)));
        };
        let name = name.as_str();
        if TAKEN.contains(&name) || name.starts_with("grpc-") {
            let what = format!("the header `{key}` is set by the output itself");
            return Err((what, None));
        }
        Ok(name.to_owned())
    }
}

/// The headers of a checked configuration, marked as secret.
pub(crate) fn headers(checked: &BTreeMap<String, Secret>) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for (name, value) in checked {
        let fail = |message: &str| Error::value(&format!("headers.{name}"), message);
        let name = Name::try_from(name.as_str()).map_err(|_| fail("is not a header name"))?;
        let value = Value::try_from(value.expose());
        let mut value = value.map_err(|_| fail("has characters that no header can hold"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_marked_as_secret() {
        let checked = BTreeMap::from([("authorization".to_owned(), Secret::new("Bearer hunter2"))]);
        let headers = headers(&checked).unwrap();
        assert!(headers["authorization"].is_sensitive());
        assert!(!format!("{headers:?}").contains("hunter2"));
    }

    #[test]
    fn names_that_cannot_be_set_are_refused() {
        for name in ["a b", "", "Content-Type", "User-Agent", "grpc-timeout"] {
            assert!(HeaderName::check(name).is_err(), "{name}");
        }
        assert_eq!(HeaderName::check("X-Scope-OrgID").unwrap(), "x-scope-orgid");
    }

    #[test]
    fn an_error_hides_the_value() {
        let checked = BTreeMap::from([("x-a".to_owned(), Secret::new("hunter2\n"))]);
        let error = headers(&checked).unwrap_err().to_string();
        assert!(error.starts_with("headers.x-a: "), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
