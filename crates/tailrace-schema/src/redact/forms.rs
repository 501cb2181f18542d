//! A value in the forms that programs repeat it in: percent-encoded, escaped for HTML and in JSON, base64 and hex.
//!
//! Each form is of the whole value. A value inside of a longer text that is encoded as a whole is not recognised.

use std::fmt::Write;

/// Of a longer value no form is looked for.
const VALUE_BYTES_MAX: usize = 4096;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// All forms of a value that differ from it. Searches ignore the case of letters, so that hex digits have one form.
pub fn of(value: &str) -> Vec<String> {
    if value.is_empty() || value.len() > VALUE_BYTES_MAX {
        return Vec::new();
    }
    let base64 = base64(value.as_bytes());
    let url_safe = base64.replace('+', "-").replace('/', "_");
    let percent = percent(value, "-._~");
    let mut forms = vec![
        percent.replace("%20", "+"),
        self::percent(value, "-._*").replace("%20", "+"),
        self::percent(value, "-._~!*'()"),
        percent,
        html(value, ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"]),
        html(value, ["&amp;", "&lt;", "&gt;", "&quot;", "&#x27;"]),
        html(value, ["&amp;", "&lt;", "&gt;", "&#34;", "&#39;"]),
        html(value, ["&#38;", "&#60;", "&#62;", "&#34;", "&#39;"]),
        html(value, ["&amp;", "&lt;", "&gt;", "\"", "'"]),
        hex(value),
    ];
    // As most write it; PHP; Go and Python's Flask; Gson; and each with other characters as numbers.
    for escaped in ["", "/", "&<>", "&<>'", "&<>'="] {
        forms.push(json(value, escaped, false));
        forms.push(json(value, escaped, true));
    }
    // With padding first: the longer form wins.
    for form in [base64, url_safe] {
        let padding = "=".repeat((4 - form.len() % 4) % 4);
        if !padding.is_empty() {
            forms.push(format!("{form}{padding}"));
        }
        forms.push(form);
    }
    forms.retain(|form| form != value);
    forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    forms.dedup();
    forms
}

fn percent(value: &str, unreserved: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || unreserved.as_bytes().contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// With these in the place of `&`, `<`, `>`, `"` and `'`.
fn html(value: &str, entities: [&str; 5]) -> String {
    let mut text = String::new();
    for c in value.chars() {
        match "&<>\"'".find(c) {
            Some(at) => text.push_str(entities[at]),
            None => text.push(c),
        }
    }
    text
}

/// In a JSON string, where these are escaped although they need not be; `is_ascii` where others than ASCII are numbers.
fn json(value: &str, escaped: &str, is_ascii: bool) -> String {
    let mut text = String::new();
    let mut units = [0; 2];
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\t' => text.push_str("\\t"),
            '/' if escaped.contains('/') => text.push_str("\\/"),
            _ if c.is_control() || escaped.contains(c) || (is_ascii && !c.is_ascii()) => {
                for unit in c.encode_utf16(&mut units) {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
            _ => text.push(c),
        }
    }
    text
}

fn hex(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Without padding.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..=group.len() {
            let index = bits >> (18 - 6 * digit) & 63;
            text.push(char::from(BASE64[index as usize]));
        }
    }
    text
}
