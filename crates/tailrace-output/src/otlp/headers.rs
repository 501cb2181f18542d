//! The user's headers, checked and marked as secret. Takes names and values, gives a header map; it
//! never repeats a value in an error.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Error;

/// Headers the transport writes itself.
const OURS: [&str; 11] = [
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

/// Checks the headers of the configuration.
pub(super) fn check(pairs: &[(String, String)]) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let field = format!("headers.{name}");
        let name = HeaderName::try_from(name.as_str())
            .map_err(|_| Error::value(&field, "is not a header name"))?;
        if OURS.contains(&name.as_str()) || name.as_str().starts_with("grpc-") {
            return Err(Error::value(&field, "is set by the transport: remove it"));
        }
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| {
            let message = "has a value with characters that no header can hold";
            Error::value(&field, message)
        })?;
        value.set_sensitive(true);
        if headers.insert(name, value).is_some() {
            return Err(Error::value(&field, "is given twice"));
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::check;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn values_are_marked_as_secret() {
        let headers = check(&pairs(&[("Authorization", "Bearer hunter2")])).unwrap();
        assert!(headers["authorization"].is_sensitive());
        assert!(!format!("{headers:?}").contains("hunter2"));
    }

    #[test]
    fn mistakes_name_the_header_and_hide_its_value() {
        let cases = [
            ("a b", "hunter2"),
            ("x-a", "hunter2\n"),
            ("Content-Type", "hunter2"),
            ("grpc-timeout", "hunter2"),
        ];
        for (name, value) in cases {
            let error = check(&pairs(&[(name, value)])).unwrap_err().to_string();
            assert!(error.starts_with(&format!("headers.{name}: ")), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert!(check(&pairs(&[("x-a", "1"), ("X-A", "2")])).is_err());
    }
}
