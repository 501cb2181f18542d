//! The parameters of a request, after the `?`. A parameter that is not known or has a value that cannot be used is refused
//! with what would be right.

use std::borrow::Cow;

use axum::extract::Request;
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;

use super::refused;
use crate::printed::redacted;

/// Refuses a request with parameters, for paths that have none.
pub(super) async fn none(request: Request, next: Next) -> Response {
    match Parameters::of(request.uri(), &[]) {
        Ok(_) => next.run(request).await,
        Err(text) => refused(StatusCode::BAD_REQUEST, &redacted(&text)),
    }
}

/// The parameters of one request.
#[derive(Debug)]
pub(super) struct Parameters<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Parameters<'a> {
    /// Those of a request that knows these names.
    ///
    /// # Errors
    ///
    /// It has another one, or one of them twice.
    pub(super) fn of(uri: &'a Uri, known: &[&str]) -> Result<Self, String> {
        let query = uri.query().unwrap_or_default();
        let mut pairs: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if !known.contains(&&*name) {
                if known.is_empty() {
                    return Err(format!("unknown parameter `{name}`; there is none"));
                }
                let known = known.join("`, `");
                return Err(format!("unknown parameter `{name}`; there is `{known}`"));
            }
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(format!("`{name}` is there twice"));
            }
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    /// A text, if it is there.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }

    /// A number up to `max`; `default` if it is not there.
    ///
    /// # Errors
    ///
    /// It is none.
    pub(super) fn number(&self, name: &str, default: usize, max: usize) -> Result<usize, String> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && *number <= max);
        number.ok_or_else(|| format!("`{name}`: expected a number from 0 to {max}, got `{text}`"))
    }

    /// One of these, with its name; the first one if it is not there.
    ///
    /// # Errors
    ///
    /// It is another one.
    pub(super) fn choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&'static str, T)],
    ) -> Result<(&'static str, T), String> {
        let Some(text) = self.text(name) else {
            return Ok(choices[0]);
        };
        let found = choices.iter().find(|(known, _)| *known == text);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
            let known = known.join("`, `");
            format!("`{name}`: expected one of `{known}`, got `{text}`")
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn asked<T>(
        path: &str,
        ask: impl Fn(&Parameters<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let uri: Uri = path.parse().unwrap();
        ask(&Parameters::of(&uri, &["n", "by"])?)
    }

    #[test]
    fn numbers_and_choices_are_checked() {
        let number = |path: &str| asked(path, |parameters| parameters.number("n", 20, 500));
        assert_eq!(number("/log"), Ok(20));
        assert_eq!(number("/log?n=0"), Ok(0));
        assert_eq!(number("/log?n=500&by=x"), Ok(500));
        for wrong in [
            "/log?n=501",
            "/log?n=-1",
            "/log?n=+1",
            "/log?n=99999999999999999999",
        ] {
            let text = number(wrong).unwrap_err();
            assert!(text.contains("from 0 to 500"), "{text}");
        }
        let choices = [("file", 1), ("pod", 2)];
        let choice = |path: &str| asked(path, |parameters| parameters.choice("by", &choices));
        assert_eq!(choice("/s"), Ok(("file", 1)));
        assert_eq!(choice("/s?by=pod"), Ok(("pod", 2)));
        let text = choice("/s?by=node").unwrap_err();
        assert!(
            text.contains("`file`, `pod`") && text.contains("`node`"),
            "{text}"
        );
    }

    #[test]
    fn what_is_not_known_or_there_twice_is_refused() {
        let text = |path: &str| {
            asked(path, |parameters| {
                Ok(parameters.text("by").map(str::to_owned))
            })
        };
        assert_eq!(text("/s?by=a%20b%26"), Ok(Some("a b&".to_owned())));
        assert!(
            text("/s?sort=x")
                .unwrap_err()
                .contains("`sort`; there is `n`, `by`")
        );
        assert!(text("/s?by=a&by=b").unwrap_err().contains("twice"));
        assert_eq!(text("/s?by=%ff"), Ok(Some("\u{fffd}".to_owned())));
    }
}
