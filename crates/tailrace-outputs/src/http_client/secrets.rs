//! What the server of an output must not give back to us: the values of its headers and of the query of its URL, and the
//! credentials of its proxy. A server
//! that quotes a request in its answer would otherwise put them into logs and into the dead-letter file. A value is
//! recognised in any case, and also percent-encoded, escaped for HTML and in JSON, in base64 and in hex. It is
//! replaced by as many `*`, so that a message of protobuf around it stays readable.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use tailrace_schema::Secret;
use tailrace_schema::redact::forms;

use super::proxy::Proxy;

/// A shorter value is no credential, and occurs in any text.
const BYTES_MIN: usize = 6;

/// Texts that are masked in answers; longer ones first.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<Vec<u8>>);

impl Secrets {
    /// The values of these headers and the credentials of the proxy, their words, what a `Basic` credential encodes, and
    /// the values in the query.
    pub(crate) fn of(
        headers: &BTreeMap<String, Secret>,
        url: &Url,
        proxy: Option<&Proxy>,
    ) -> Secrets {
        let mut all: Vec<Vec<u8>> = proxy.map(|proxy| proxy.written.clone()).unwrap_or_default();
        let authorization = proxy.and_then(|proxy| proxy.authorization.as_ref());
        let authorization = authorization.and_then(|value| value.to_str().ok());
        for value in headers.values().map(Secret::expose).chain(authorization) {
            let value = value.trim();
            all.push(value.into());
            for word in value.split_ascii_whitespace() {
                all.push(word.into());
                let Some(pair) = STANDARD.decode(word).ok().filter(|pair| is_text(pair)) else {
                    continue;
                };
                let password = pair.iter().position(|byte| *byte == b':');
                all.extend(password.map(|at| pair[at + 1..].to_vec()));
                all.push(pair);
            }
        }
        for (_, value) in url.query_pairs() {
            all.push(value.as_bytes().into());
        }
        let raw = url.query().unwrap_or_default().split('&');
        all.extend(raw.filter_map(|pair| Some(pair.split_once('=')?.1.into())));
        all.retain(|secret| secret.len() >= BYTES_MIN);
        let texts: Vec<String> = all
            .iter()
            .filter_map(|secret| std::str::from_utf8(secret).ok().map(str::to_owned))
            .collect();
        let encoded = texts.iter().flat_map(|text| forms::of(text));
        all.extend(encoded.map(String::into_bytes));
        all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        Secrets(all)
    }

    /// Masks them in place.
    pub(crate) fn mask(&self, bytes: &mut [u8]) {
        for secret in &self.0 {
            let mut at = 0;
            while at + secret.len() <= bytes.len() {
                if bytes[at..at + secret.len()].eq_ignore_ascii_case(secret) {
                    bytes[at..at + secret.len()].fill(b'*');
                    at += secret.len();
                } else {
                    at += 1;
                }
            }
        }
    }

    /// The text with them masked.
    pub(crate) fn masked(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        self.mask(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::proxy::proxy_for;
    use super::*;

    #[test]
    fn the_credentials_of_a_proxy_are_masked_from_the_option_and_the_environment() {
        let url = Url::parse("http://h/").unwrap();
        let address = "http://some%40user:pass%20w\u{f6}rd@p:3128";
        let option = Secret::new(address);
        for (option, variable) in [(Some(&option), None), (None, Some(address.to_owned()))] {
            let proxy = proxy_for(&url, option, |_| variable.clone()).unwrap();
            let encoded = proxy.as_ref().unwrap().authorization.clone().unwrap();
            let encoded = encoded
                .to_str()
                .unwrap()
                .trim_start_matches("Basic ")
                .to_owned();
            let secrets = Secrets::of(&BTreeMap::new(), &url, proxy.as_ref());
            for text in [
                "pass w\u{f6}rd",
                "pass%20w%C3%B6rd",
                "some@user:pass w\u{f6}rd",
                &encoded,
            ] {
                let masked = secrets.masked(&format!("[{text}]"));
                assert_eq!(masked, format!("[{}]", "*".repeat(text.len())), "{text}");
            }
            assert_eq!(secrets.masked("p:3128"), "p:3128");
        }
    }

    #[test]
    fn values_words_and_passwords_are_masked_and_short_texts_are_not() {
        let headers = [
            ("authorization", "Bearer tok-12345"),
            ("x-basic", "Basic dXNlcjpodW50ZXIyMg=="),
            ("x-scope", "prod"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), Secret::new(value)));
        let url = Url::parse("http://h/x?key=se%2Fcret1&a=b").unwrap();
        let secrets = Secrets::of(&headers.into(), &url, None);
        let cases = [
            ("got Bearer tok-12345!", "got ****************!"),
            ("got tok-12345tok-12345", "got ******************"),
            ("user:hunter22 or hunter22", "************* or ********"),
            ("se/cret1 se%2Fcret1", "******** **********"),
            (
                "TOK-12345 dG9rLTEyMzQ1 tok%2D12345",
                "********* ************ tok%2D12345",
            ),
            (
                "aHVudGVyMjI= 68756e7465723232",
                "************ ****************",
            ),
            ("se&#47;cret1 c2UvY3JldDE", "se&#47;cret1 ***********"),
            ("{\"a\":\"se\\/cret1\"}", "{\"a\":\"*********\"}"),
            ("prod b Bearer", "prod b ******"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(secrets.masked(text), expected, "{text}");
        }
        assert_eq!(Secrets::default().masked("a"), "a");
    }
}
