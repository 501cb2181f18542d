//! What a pod says of how the lines of its containers are to be read: annotations `tailrace.io/format` and
//! `tailrace.io/multiline`, for one container with its name after a dot. Never judges a value: what it may be is the
//! reader's affair.

use std::collections::BTreeMap;

/// The most bytes of a value that are kept: more than any valid one has.
const VALUE_BYTES_MAX: usize = 512;

const FORMAT: &str = "tailrace.io/format";
const MULTILINE: &str = "tailrace.io/multiline";

/// The annotations that count for a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FramingAnnotations {
    /// What its lines are.
    pub format: Option<Said>,
    /// Which of them are one record.
    pub multiline: Option<Said>,
}

/// One annotation. It is from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Its name.
    pub key: Box<str>,
    /// Its value, or the beginning of one that is too long to be valid.
    pub value: Box<str>,
}

impl FramingAnnotations {
    /// Those of a container: its own before those of the pod.
    pub(crate) fn of(annotations: &BTreeMap<String, String>, container: &str) -> Self {
        let said = |name: &str| {
            let own = format!("{name}.{container}");
            let (key, value) = [own.as_str(), name]
                .iter()
                .find_map(|key| annotations.get_key_value(*key))?;
            Some(Said {
                key: key.as_str().into(),
                value: beginning(value).into(),
            })
        };
        Self {
            format: said(FORMAT),
            multiline: said(MULTILINE),
        }
    }
}

/// Whether the annotation is one of these.
pub(crate) fn is_framing(key: &str) -> bool {
    [FORMAT, MULTILINE].iter().any(|name| {
        let rest = key.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// What is kept of a value.
pub(crate) fn beginning(value: &str) -> &str {
    &value[..value.floor_char_boundary(VALUE_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_container_s_own_annotation_counts_before_the_pod_s() {
        let annotations = annotations(&[
            ("tailrace.io/format", "raw"),
            ("tailrace.io/format.app", "json"),
            ("tailrace.io/multiline.app", "java"),
        ]);
        let of = |container: &str| {
            let framing = FramingAnnotations::of(&annotations, container);
            let text = |said: Option<Said>| said.map(|said| format!("{}={}", said.key, said.value));
            (text(framing.format), text(framing.multiline))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            of("app"),
            (
                some("tailrace.io/format.app=json"),
                some("tailrace.io/multiline.app=java")
            )
        );
        assert_eq!(of("other"), (some("tailrace.io/format=raw"), None));
    }

    #[test]
    fn a_huge_value_is_cut_at_a_character() {
        let huge = "ü".repeat(200_000);
        let annotations = annotations(&[("tailrace.io/multiline", &format!("a{huge}"))]);
        let said = FramingAnnotations::of(&annotations, "app")
            .multiline
            .unwrap();
        assert_eq!(said.value.len(), VALUE_BYTES_MAX - 1);
    }

    #[test]
    fn names() {
        for (key, expected) in [
            ("tailrace.io/format", true),
            ("tailrace.io/multiline.app", true),
            ("tailrace.io/formats", false),
            ("tailrace.io/exclude", false),
            ("", false),
        ] {
            assert_eq!(is_framing(key), expected, "{key}");
        }
    }
}
