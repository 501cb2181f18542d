//! The `inputs` of a pipeline: where its records come from and how they are cut. Declarations and
//! their reading; never opens anything.

mod kubernetes;

use std::path::PathBuf;
use std::time::Duration;

use crate::multiline::Multiline;
use tailrace_schema::kind::{
    DAY, FilePath, GIB, Glob, HOUR, KIB, Kind, List, MIB, SECOND, Size, Time,
};
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;
use tailrace_schema::section::{Section, Shape, Tag};
use tailrace_schema::source::Position;

pub use kubernetes::{ContainerFormat, ContainerNames, KubernetesInput, Metadata};

/// One way in.
#[derive(Clone, Debug)]
pub enum Input {
    /// Files that grow and rotate.
    File(FileInput, Position),
    /// The logs of the containers of a Kubernetes node.
    Kubernetes(Box<KubernetesInput>, Position),
    /// The standard input of the process.
    Stdin(StdinInput, Position),
}

/// What it means, wherever it is written down.
impl PartialEq for Input {
    fn eq(&self, other: &Input) -> bool {
        match (self, other) {
            (Input::File(one, _), Input::File(other, _)) => one == other,
            (Input::Stdin(one, _), Input::Stdin(other, _)) => one == other,
            (Input::Kubernetes(one, _), Input::Kubernetes(other, _)) => one == other,
            (Input::File(..) | Input::Stdin(..) | Input::Kubernetes(..), _) => false,
        }
    }
}

impl Input {
    /// Where it is written down.
    pub fn position(&self) -> &Position {
        match self {
            Input::File(_, position)
            | Input::Kubernetes(_, position)
            | Input::Stdin(_, position) => position,
        }
    }

    /// The longest record, in bytes.
    pub fn max_record_bytes(&self) -> u64 {
        match self {
            Input::File(input, _) => input.max_record_bytes,
            Input::Kubernetes(input, _) => input.max_record_bytes,
            Input::Stdin(input, _) => input.max_record_bytes,
        }
    }

    /// Which lines are joined.
    pub fn multiline(&self) -> Option<&Multiline> {
        match self {
            Input::File(input, _) => input.multiline.as_ref(),
            Input::Kubernetes(input, _) => input.multiline.as_ref(),
            Input::Stdin(input, _) => input.multiline.as_ref(),
        }
    }

    /// The offset of timestamps that name no zone.
    pub fn timezone(&self) -> Timezone {
        match self {
            Input::File(input, _) => input.timezone,
            Input::Kubernetes(input, _) => input.timezone,
            Input::Stdin(input, _) => input.timezone,
        }
    }

    /// Whether it reads files: they can be read again.
    pub fn is_files(&self) -> bool {
        !matches!(self, Input::Stdin(..))
    }

    /// Whether it leaves out what is there at the first start.
    pub fn skips_at_first(&self) -> bool {
        let (start_at, ignore_older) = match self {
            Input::File(input, _) => (input.start_at, input.ignore_older),
            Input::Kubernetes(input, _) => (input.start_at, input.ignore_older),
            Input::Stdin(..) => return false,
        };
        start_at == StartAt::End || ignore_older.is_some()
    }
}

section! {
    /// Follows files that match globs, through rotation and truncation.
    pub struct FileInput {
        /// Files to read: paths or globs (`*`, `?`, `[a-z]`, `{a,b}`, and `**` for any directories). Relative
        /// ones begin at the working directory.
        include: Vec<String> = List<Glob, 1>, required("[/var/log/app/*.log]");
        /// Files to leave out although `include` names them.
        exclude: Vec<String> = List<Glob, 0>, default("[]", "[/var/log/app/*.gz, /var/log/app/debug-*.log]");
        /// Directories that links may lead into, besides those that `include` begins with. A link to a place
        /// outside all of them is not followed, so that nobody can have the agent read a file by linking to it.
        follow_roots: Vec<PathBuf> = List<FilePath, 0>, default("[]", "[/var/log/pods]");
        /// How the bytes of a file are cut into records.
        format: Format = Format, default("auto");
        /// Joins lines of plain text into one record, such as those of a stack trace.
        multiline: Option<Multiline> = Multiline, unset("each line is a record", "{preset: [java, python], timeout: 1s}");
        /// Where to begin in files that are there when the pipeline first starts. A pipeline that has
        /// a checkpoint goes on from there, and files that appear later are read from their first byte.
        start_at: StartAt = StartAt, default("beginning");
        /// At the first start, skip files that were not written to for this long. The bytes skipped are counted.
        ignore_older: Option<Duration> = Time<{ SECOND }, { 3650 * DAY }>, unset("read them all", "1d");
        /// The longest record. A longer one is cut there and flagged `truncated`; the file goes on.
        max_record_bytes: u64 = Size<{ KIB }, { 64 * MIB }>, default("1MiB");
        /// The offset of timestamps that name no zone. Daylight saving is not followed.
        timezone: Timezone = Timezone, default("UTC", "+02:00");
        /// How often the directories are searched for files that no notification announced; without inotify, up to four times a second.
        discover_interval: Duration = Time<100, { HOUR }>, default("5s");
    }
}

section! {
    /// Reads the standard input until it ends. At most one pipeline can have it.
    pub struct StdinInput {
        /// How the bytes are cut into records.
        format: Format = Format, default("auto");
        /// Joins lines of plain text into one record, such as those of a stack trace.
        multiline: Option<Multiline> = Multiline, unset("each line is a record", "{preset: [java, python], timeout: 1s}");
        /// The longest record. A longer one is cut there and flagged `truncated`.
        max_record_bytes: u64 = Size<{ KIB }, { 64 * MIB }>, default("1MiB");
        /// The offset of timestamps that name no zone. Daylight saving is not followed.
        timezone: Timezone = Timezone, default("UTC", "+02:00");
        /// Where the bytes wait until every output has settled them.
        queue: StdinQueue = StdinQueue, default("{type: memory}", "{type: disk, max_bytes: 1GiB}");
    }
}

section_defaults!(StdinInput);

section! {
    /// In the process. What is under way when it is killed, or not delivered when it is stopped, is gone.
    pub struct MemoryQueue {}
}

section! {
    /// In the directory `queue/PIPELINE` of the data directory: written and synced before anything else happens,
    /// deleted when every output has settled it, read again at the next start if not.
    pub struct DiskQueue {
        /// Bytes of all files of the queue, at most. Beyond it, reading of standard input pauses. At least twice
        /// `limits.replay`.
        max_bytes: u64 = Size<{ 2 * MIB }, { 1024 * GIB }>, default("1GiB");
    }
}

tagged! {
    /// Where the bytes of standard input wait.
    pub enum StdinQueue {
        /// In the process: what is under way when it is killed is gone.
        Memory(MemoryQueue) = "memory",
        /// In files, which outlive it.
        Disk(DiskQueue) = "disk",
    }
}

choice! {
    /// How bytes become records.
    pub enum Format {
        /// Decided for each file by its first complete line: `cri`, `docker` or `json` if it looks like one, else `raw`.
        Auto = "auto",
        /// One JSON object per line. Any other line becomes a record whose body is the line, flagged `malformed`.
        Json = "json",
        /// One text per line, never looked into: the body of the record.
        Raw = "raw",
        /// Lines of a Kubernetes container runtime (containerd, CRI-O). Partial lines are joined.
        Cri = "cri",
        /// Lines of Docker's json-file driver. Pieces are joined until the text ends in a line end.
        Docker = "docker",
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

const TAGS: &[Tag<Input>] = &[
    Tag {
        name: "file",
        info: &<FileInput as Section>::INFO,
        example: "",
        read: |node, reader, common| {
            let input = reader.section(node, common)?;
            Some(Input::File(input, node.position.clone()))
        },
    },
    Tag {
        name: "kubernetes",
        info: &<KubernetesInput as Section>::INFO,
        example: "",
        read: |node, reader, common| {
            let input = reader.section(node, common)?;
            let is_sound = kubernetes::check(&input, node, reader);
            is_sound.then(|| Input::Kubernetes(Box::new(input), node.position.clone()))
        },
    },
    Tag {
        name: "stdin",
        info: &<StdinInput as Section>::INFO,
        example: "",
        read: |node, reader, common| {
            let input = reader.section(node, common)?;
            Some(Input::Stdin(input, node.position.clone()))
        },
    },
];

impl Kind for Input {
    type Value = Input;

    fn shape() -> Shape {
        Tag::shape(&[], TAGS)
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Input> {
        let tag = reader.tag(node, TAGS)?;
        (tag.read)(node, reader, &["type"])
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
