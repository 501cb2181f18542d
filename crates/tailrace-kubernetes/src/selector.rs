//! Label selectors as kubectl takes them. Parses text into a selector, or reports what is wrong and
//! where.
//!
//! ```text
//! selector    = [ requirement { "," requirement } ]
//! requirement = key | "!" key | key op value | key ("in" | "notin") "(" value { "," value } ")"
//! op          = "=" | "==" | "!="
//! ```
//!
//! As in Kubernetes, `!=` and `notin` also select what has no such label.

use kube::core::{Expression, Selector};

use crate::error::Kind;

/// An empty text selects everything.
pub(crate) fn parse(text: &str) -> Result<Selector, Kind> {
    let mut parser = Parser { text, at: 0 };
    parser.selector().map_err(|message| Kind::Selector {
        text: text.to_owned(),
        position: text[..parser.at].chars().count() + 1,
        message,
    })
}

struct Parser<'a> {
    text: &'a str,
    /// Bytes taken; always at the start of a character.
    at: usize,
}

impl<'a> Parser<'a> {
    fn selector(&mut self) -> Result<Selector, &'static str> {
        let mut selector = Selector::default();
        self.blanks();
        if self.rest().is_empty() {
            return Ok(selector);
        }
        loop {
            selector.extend(self.requirement()?);
            if self.rest().is_empty() {
                return Ok(selector);
            }
            if !self.take(",") {
                return Err("`,` is expected");
            }
        }
    }

    fn requirement(&mut self) -> Result<Expression, &'static str> {
        if self.take("!") {
            return Ok(Expression::DoesNotExist(self.key()?));
        }
        let key = self.key()?;
        if self.take("!=") {
            return Ok(Expression::NotEqual(key, self.word().to_owned()));
        }
        if self.take("==") || self.take("=") {
            return Ok(Expression::Equal(key, self.word().to_owned()));
        }
        let start = self.at;
        match self.word() {
            "" => Ok(Expression::Exists(key)),
            "in" => Ok(Expression::In(key, self.values()?)),
            "notin" => Ok(Expression::NotIn(key, self.values()?)),
            _ => {
                self.at = start;
                Err("`=`, `!=`, `in` or `notin` is expected")
            }
        }
    }

    fn key(&mut self) -> Result<String, &'static str> {
        match self.word() {
            "" => Err("the key of a label is expected"),
            key => Ok(key.to_owned()),
        }
    }

    fn values<C: FromIterator<String>>(&mut self) -> Result<C, &'static str> {
        if !self.take("(") {
            return Err("`(` is expected");
        }
        let mut values = Vec::new();
        loop {
            values.push(self.word().to_owned());
            if self.take(")") {
                return Ok(values.into_iter().collect());
            }
            if !self.take(",") {
                return Err("`,` or `)` is expected");
            }
        }
    }

    /// The longest run of what labels are made of, which may be none.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "-_./".contains(c)))
            .unwrap_or(rest.len());
        self.at += end;
        self.blanks();
        &rest[..end]
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
            self.blanks();
        }
        found
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube::core::SelectorExt;
    use proptest::prelude::*;

    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels: BTreeMap<String, String> = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        parse(selector).unwrap().matches(&labels)
    }

    fn fault(selector: &str) -> (usize, &'static str) {
        match parse(selector) {
            Err(Kind::Selector {
                position, message, ..
            }) => (position, message),
            other => panic!("{selector}: {other:?}"),
        }
    }

    #[test]
    fn every_operator() {
        let labels = [("a", "b"), ("app.kubernetes.io/name", "web"), ("empty", "")];
        for yes in [
            "",
            "  ",
            "a=b",
            "a==b",
            " a = b , app.kubernetes.io/name=web",
            "a!=c",
            "missing!=c",
            "a in (x, b)",
            "a in(b)",
            "a notin (x,y)",
            "missing notin (x)",
            "a",
            "!missing",
            "! missing",
            "empty=",
            "a=b,c!=d,a in (b,y),!f",
        ] {
            assert!(selects(yes, &labels), "{yes}");
        }
        for no in [
            "a=c",
            "a!=b",
            "a in (x)",
            "missing in (x)",
            "a notin (b)",
            "missing",
            "!a",
        ] {
            assert!(!selects(no, &labels), "{no}");
        }
    }

    #[test]
    fn a_fault_has_its_place() {
        assert_eq!(fault("a=b,"), (5, "the key of a label is expected"));
        assert_eq!(fault("a=b c"), (5, "`,` is expected"));
        assert_eq!(fault("a in b"), (6, "`(` is expected"));
        assert_eq!(fault("a in (b"), (8, "`,` or `)` is expected"));
        assert_eq!(
            fault("a is b"),
            (3, "`=`, `!=`, `in` or `notin` is expected")
        );
        assert_eq!(fault("=b"), (1, "the key of a label is expected"));
        assert_eq!(fault("a=ü"), (3, "`,` is expected"));
    }

    proptest! {
        #[test]
        fn what_kubernetes_prints_is_read_back(
            key in "[a-z]([a-z./-]{0,8}[a-z])?",
            values in proptest::collection::btree_set("[a-z0-9._-]{0,5}", 1..4),
            kind in 0..6,
        ) {
            prop_assume!(key != "in" && key != "notin");
            let value = values.iter().next().unwrap().clone();
            let expression = match kind {
                0 => Expression::In(key, values),
                1 => Expression::NotIn(key, values),
                2 => Expression::Equal(key, value),
                3 => Expression::NotEqual(key, value),
                4 => Expression::Exists(key),
                _ => Expression::DoesNotExist(key),
            };
            let text = expression.to_string();
            let back: Vec<Expression> = parse(&text).unwrap().into_iter().collect();
            prop_assert_eq!(back, vec![expression]);
        }

        #[test]
        fn any_text_is_safe(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }
    }
}
