//! Options that several inputs have: how bytes become records, where to begin, and what times mean.

mod annotated;
mod multiline;

use tailrace_schema::kind::Kind;
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;
use tailrace_schema::section::Shape;

pub use annotated::LineContent;
pub use multiline::{Multiline, MultilineBy, MultilinePreset, StartExpression};

/// How the bytes of an input become records.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    /// What a record looks like in them.
    pub framing: Framing,
    /// The longest record, in bytes.
    pub max_record_bytes: u64,
    /// Which lines are joined.
    pub multiline: Option<&'a Multiline>,
    /// The offset of timestamps that name no zone.
    pub timezone: Timezone,
}

/// What a record looks like in the bytes of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Decided for each source by its first line: a container's envelope, JSON or any text.
    Auto,
    /// One JSON object per line.
    Json,
    /// One text per line.
    Raw,
    /// Decided for each source by its first line: the envelope of a container runtime or of Docker.
    Container,
    /// Lines of a Kubernetes container runtime.
    Cri,
    /// Lines of Docker's json-file driver.
    Docker,
}

choice! {
    /// How bytes become records.
    pub enum Format {
        /// Decided for each file by its first complete line that is not blank: `cri` or `docker` if it has such an
        /// envelope, else lines of JSON objects and plain text in any mixture. Plain text is not flagged `malformed` then.
        Auto = "auto",
        /// One JSON object per line. Any other line becomes a record whose body is the line, flagged `malformed`.
        Json = "json",
        /// One text per line: the body of the record. Only one carriage return at its end is removed, also behind the
        /// envelope of a container.
        Raw = "raw",
        /// Lines of a Kubernetes container runtime (containerd, CRI-O). Partial lines are joined.
        Cri = "cri",
        /// Lines of Docker's json-file driver. Pieces are joined until the text ends in a line end.
        Docker = "docker",
    }
}

impl Format {
    /// The framing that it stands for.
    pub fn framing(self) -> Framing {
        match self {
            Format::Auto => Framing::Auto,
            Format::Json => Framing::Json,
            Format::Raw => Framing::Raw,
            Format::Cri => Framing::Cri,
            Format::Docker => Framing::Docker,
        }
    }
}

choice! {
    /// Where to begin in a file.
    pub enum StartAt {
        /// At the first byte.
        Beginning = "beginning",
        /// At the end: only what is written from now on.
        End = "end",
    }
}

/// A fixed distance from UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timezone {
    offset_s: i32,
}

impl Timezone {
    /// Seconds east of UTC, at most 18 hours either way.
    pub fn offset_s(self) -> i32 {
        self.offset_s
    }

    /// Reads `UTC`, `Z`, `+02:00`, `-0530` or `+02`.
    fn parse(text: &str) -> Option<Timezone> {
        if matches!(text, "UTC" | "Z") {
            return Some(Timezone { offset_s: 0 });
        }
        let (sign, digits) = match text.split_at_checked(1)? {
            ("+", digits) => (1, digits),
            ("-", digits) => (-1, digits),
            _ => return None,
        };
        let (hours, minutes) = match digits.len() {
            2 => (digits, "00"),
            4 => digits.split_at_checked(2)?,
            5 => digits
                .split_once(':')
                .filter(|(hours, _)| hours.len() == 2)?,
            _ => return None,
        };
        let number = |text: &str| {
            text.bytes()
                .all(|byte| byte.is_ascii_digit())
                .then(|| text.parse::<i32>().ok())?
        };
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let offset_s = hours * 3600 + minutes * 60;
        (minutes < 60 && offset_s <= 18 * 3600).then_some(Timezone {
            offset_s: sign * offset_s,
        })
    }
}

impl Kind for Timezone {
    type Value = Timezone;

    fn shape() -> Shape {
        Shape::Text("UTC offset")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Timezone> {
        let expected = "`UTC` or an offset such as `+02:00`";
        let resolved = reader.scalar(node, expected)?;
        let timezone = Timezone::parse(&resolved.text);
        if timezone.is_none() {
            let named = resolved.text.contains('/')
                || resolved.text.starts_with(|c: char| c.is_ascii_alphabetic());
            let hint = named.then(|| "named zones are not known; give the fixed offset".to_owned());
            reader.refuse_text(node, &resolved, expected, hint);
        }
        timezone
    }
}

#[cfg(test)]
mod tests {
    use super::Timezone;

    #[test]
    fn timezones() {
        let cases = [
            ("UTC", Some(0)),
            ("Z", Some(0)),
            ("+02:00", Some(7200)),
            ("-0530", Some(-19800)),
            ("+14", Some(50400)),
            ("+00:00", Some(0)),
            ("+18:00", Some(64800)),
            ("+18:01", None),
            ("02:00", None),
            ("+2:00", None),
            ("+02:60", None),
            ("+0x:00", None),
            ("++1:00", None),
            ("Europe/Berlin", None),
            ("", None),
            ("é", None),
        ];
        for (text, expected) in cases {
            assert_eq!(
                Timezone::parse(text).map(Timezone::offset_s),
                expected,
                "{text}"
            );
        }
    }
}
