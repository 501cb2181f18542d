//! `sha256(text)`: the same text has the same hash, from which the text cannot be computed. So a value that must not leave can
//! still be counted, grouped and joined by.

use std::sync::Arc;

use arrow::array::{AsArray, StringViewArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use sha2::{Digest, Sha256};

/// SHA-256 (FIPS 180-4) of a text's UTF-8 bytes, as 64 hexadecimal digits in small letters; DataFusion's own, which is of bytes
/// and gives bytes, comes with four other kinds of hashes.
#[must_use]
pub fn sha256() -> ScalarUDF {
    let signature = Signature::uniform(1, vec![DataType::Utf8View], Volatility::Immutable);
    ScalarUDF::from(OfText { signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfText {
    signature: Signature,
}

impl ScalarUDFImpl for OfText {
    fn name(&self) -> &str {
        "sha256"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(texts)] => {
                let texts = texts.as_string_view_opt();
                let texts = texts.ok_or_else(|| internal_datafusion_err!("no text"))?;
                let hashes: StringViewArray = texts.iter().map(|text| text.map(hex)).collect();
                Ok(ColumnarValue::Array(Arc::new(hashes)))
            }
            [ColumnarValue::Scalar(text)] => {
                let hash = text.try_as_str().flatten().map(hex);
                Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(hash)))
            }
            _ => internal_err!("sha256 takes one text"),
        }
    }
}

fn hex(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    let hash = Sha256::digest(text.as_bytes());
    hash.iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn hashes_are_those_of_the_standard() {
        // The examples of FIPS 180-4 for no byte, one block and two blocks.
        for (text, hash) in [
            (
                "",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            (
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ] {
            assert_eq!(hex(text), hash, "{text}");
        }
    }
}
