//! The syntax of `OTEL_RESOURCE_ATTRIBUTES`: `key=value,key=value`, percent-encoded.
//!
//! The value of the variable is parsed into pairs. One error discards the whole value, as the specification of the resource
//! SDK requires. The environment itself is not read here.

/// Why a value of `OTEL_RESOURCE_ATTRIBUTES` was discarded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("resource attribute {number} (`{member}`) {cause}; the whole value is ignored")]
pub struct ResourceAttributesError {
    /// Which of the pairs, from 1.
    number: usize,
    member: String,
    cause: &'static str,
}

/// Reads the value of `OTEL_RESOURCE_ATTRIBUTES`. Of pairs with one key the last counts; empty
/// members are passed over.
///
/// Rule: OpenTelemetry specification, `resource/sdk.md`, "Specifying resource information via an
/// environment variable".
pub fn parse_resource_attributes(
    text: &str,
) -> Result<Vec<(String, String)>, ResourceAttributesError> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (at, member) in text.split(',').enumerate() {
        let member = member.trim();
        if member.is_empty() {
            continue;
        }
        let fail = |cause| ResourceAttributesError {
            number: at + 1,
            member: member.to_owned(),
            cause,
        };
        let (key, value) = member.split_once('=').ok_or_else(|| fail("has no `=`"))?;
        let decode = |text: &str| {
            decode_percent(text.trim()).ok_or_else(|| fail("has a bad percent-encoding"))
        };
        let (key, value) = (decode(key)?, decode(value)?);
        if key.is_empty() {
            return Err(fail("has no key"));
        }
        match pairs.iter_mut().find(|(known, _)| *known == key) {
            Some(known) => known.1 = value,
            None => pairs.push((key, value)),
        }
    }
    Ok(pairs)
}

fn decode_percent(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        decoded.push((high << 4 | low) as u8);
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        parse_resource_attributes(text).unwrap()
    }

    #[test]
    fn pairs_are_decoded() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs
                .iter()
                .map(|(key, value)| ((*key).into(), (*value).into()))
                .collect()
        };
        assert_eq!(read(""), []);
        assert_eq!(read(" , "), []);
        assert_eq!(
            read("service.name=shop"),
            pairs(&[("service.name", "shop")])
        );
        assert_eq!(read(" a = b , c=,"), pairs(&[("a", "b"), ("c", "")]));
        assert_eq!(read("a=b=c"), pairs(&[("a", "b=c")]));
        assert_eq!(
            read("k%2Cx=%3d%25,u=%C3%bc+"),
            pairs(&[("k,x", "=%"), ("u", "ü+")])
        );
        assert_eq!(read("a=1,b=2,a=3"), pairs(&[("a", "3"), ("b", "2")]));
    }

    #[test]
    fn one_error_discards_the_whole_value() {
        for (text, message) in [
            (
                "a=1,b",
                "resource attribute 2 (`b`) has no `=`; the whole value is ignored",
            ),
            (
                "=1",
                "resource attribute 1 (`=1`) has no key; the whole value is ignored",
            ),
            (
                "a=%2",
                "resource attribute 1 (`a=%2`) has a bad percent-encoding; the whole value is ignored",
            ),
            (
                "a=%gg",
                "resource attribute 1 (`a=%gg`) has a bad percent-encoding; the whole value is ignored",
            ),
            (
                "a=%ff",
                "resource attribute 1 (`a=%ff`) has a bad percent-encoding; the whole value is ignored",
            ),
            (
                "a=%+1",
                "resource attribute 1 (`a=%+1`) has a bad percent-encoding; the whole value is ignored",
            ),
        ] {
            assert_eq!(
                parse_resource_attributes(text).unwrap_err().to_string(),
                message
            );
        }
    }
}
