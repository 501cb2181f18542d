//! One JSON object, written member by member into a buffer. Names and texts are
//! ours and hold nothing that needs an escape, or are given escaped; nothing is
//! checked here.

use super::clock::Clock;
use super::random::Random;

/// An object being written. Nested ones are opened by [`Fields::object`].
pub(super) struct Fields<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
    /// Written after each colon and comma: empty or one space.
    space: &'static [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn open(out: &'a mut Vec<u8>) -> Fields<'a> {
        out.push(b'{');
        Fields {
            out,
            first: true,
            space: b"",
        }
    }

    pub(super) fn close(self) {
        self.out.push(b'}');
    }

    /// From here on a space follows each colon and comma.
    pub(super) fn spaced(&mut self) {
        self.space = b" ";
    }

    pub(super) fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.first {
            self.out.push(b',');
            self.out.extend_from_slice(self.space);
        }
        self.first = false;
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out.extend_from_slice(self.space);
        self.out
    }

    /// A value given as JSON text.
    pub(super) fn raw(&mut self, key: &str, json: &[u8]) {
        self.key(key).extend_from_slice(json);
    }

    pub(super) fn text(&mut self, key: &str, text: &str) {
        self.text_of(key, &[text]);
    }

    /// A string put together from parts.
    pub(super) fn text_of(&mut self, key: &str, parts: &[&str]) {
        let out = self.key(key);
        out.push(b'"');
        for part in parts {
            out.extend_from_slice(part.as_bytes());
        }
        out.push(b'"');
    }

    /// A string put together from parts and a number at its end.
    pub(super) fn text_number(&mut self, key: &str, parts: &[&str], number: u64) {
        self.text_of(key, parts);
        self.out.pop();
        write_integer(number, self.out);
        self.out.push(b'"');
    }

    pub(super) fn integer(&mut self, key: &str, value: u64) {
        write_integer(value, self.key(key));
    }

    /// `value / 1000` with three decimals.
    pub(super) fn thousandths(&mut self, key: &str, value: u64) {
        let out = self.key(key);
        write_integer(value / 1000, out);
        out.push(b'.');
        for unit in [100, 10, 1] {
            out.push(b'0' + (value / unit % 10) as u8);
        }
    }

    /// `digits` (at most 32) lower case hex digits, as a string.
    pub(super) fn hex(&mut self, key: &str, digits: usize, random: &mut Random) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut bits = u128::from(random.next()) << 64 | u128::from(random.next());
        let out = self.key(key);
        out.push(b'"');
        for _ in 0..digits {
            out.push(HEX[(bits & 15) as usize]);
            bits >>= 4;
        }
        out.push(b'"');
    }

    pub(super) fn time(&mut self, key: &str, clock: &Clock) {
        let out = self.key(key);
        out.push(b'"');
        clock.write_ms(out);
        out.push(b'"');
    }

    /// A nested object, to be closed by the caller.
    pub(super) fn object(&mut self, key: &str) -> Fields<'_> {
        let space = self.space;
        let mut nested = Fields::open(self.key(key));
        nested.space = space;
        nested
    }
}

/// Appends a number in decimal.
pub(super) fn write_integer(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_separated_and_nested() {
        let mut out = Vec::new();
        let mut fields = Fields::open(&mut out);
        fields.text("a", "x");
        fields.integer("b", u64::MAX);
        let mut nested = fields.object("c");
        nested.thousandths("d", 12_005);
        nested.thousandths("e", 7_999);
        nested.close();
        fields.spaced();
        fields.text_number("f", &["n", "-"], 0);
        fields.close();
        let expected =
            r#"{"a":"x","b":18446744073709551615,"c":{"d":12.005,"e":7.999}, "f": "n-0"}"#;
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}
