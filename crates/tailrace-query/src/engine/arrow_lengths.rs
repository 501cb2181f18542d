//! The lengths that an Arrow file says its parts have. Arrow's reader makes room for a part before it reads it, so a length that is
//! far beyond the file would end the process.

use std::path::Path;

use anyhow::{Result, anyhow, bail, ensure};
use arrow::datatypes::Schema;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::read_footer_length;
use arrow::ipc::{Block, Message, root_as_footer, root_as_message};
use tailrace_sql::caught;

use super::arrow_buffers::{Buffers, Places};
use crate::input::Input;

/// The length of the footer and the mark behind it.
const END: u64 = 10;
/// What a message begins with, before its length.
pub(super) const MESSAGE: [u8; 4] = [0xff; 4];

const CUT: &str = "it ends too early: it was cut off, or is still being written";
const UNMARKED: &str =
    "its end is not marked: it was cut off, is still being written, or its writer was not closed";
const DAMAGED: &str = "it is damaged: a part of it is longer than the file";
const UNREADABLE: &str = "it is damaged: a part of it cannot be read";

/// The columns of a file with a footer, whose parts are checked. Some writers begin it with what is no message, so that its head does
/// not tell them.
///
/// # Errors
///
/// The file cannot be read, it ends too early, or a part is longer than it.
pub(super) fn with_footer(input: &Input) -> Result<Schema> {
    let size = input.size()?;
    ensure!(size > END, CUT);
    let end = input.part(size - END..size)?;
    let Some(len) = end
        .first_chunk()
        .and_then(|end| read_footer_length(*end).ok())
    else {
        bail!(CUT);
    };
    let start = (size - END).checked_sub(len as u64);
    let Some(start) = start else {
        bail!(DAMAGED);
    };
    let footer = input.part(start..size - END)?;
    let Ok(footer) = root_as_footer(&footer) else {
        bail!("its footer is damaged");
    };
    let parts = footer.dictionaries().into_iter().flatten();
    let parts = parts.chain(footer.recordBatches().into_iter().flatten());
    let is_within = |part: &Block| {
        let lens = [
            part.offset(),
            part.metaDataLength().into(),
            part.bodyLength(),
        ];
        let end: Option<u64> = lens
            .into_iter()
            .try_fold(0, |end: u64, len| end.checked_add(u64::try_from(len).ok()?));
        end.is_some_and(|end| end <= size)
    };
    ensure!(parts.clone().all(is_within), DAMAGED);
    if let Some(path) = input.path() {
        let mut file = Places::open(&path)?;
        for part in parts {
            check(&mut file, part)?;
        }
    }
    // It panics at some of what is damaged.
    let schema = footer
        .schema()
        .map(|schema| caught(|| fb_to_schema(schema)));
    schema
        .and_then(std::result::Result::ok)
        .ok_or_else(|| anyhow!("its footer is damaged"))
}

/// Checks the buffers of a part that is within the file.
fn check(file: &mut Places, part: &Block) -> Result<()> {
    let lens = [
        part.offset(),
        part.metaDataLength().into(),
        part.bodyLength(),
    ];
    let [start, len, body] = lens.map(i64::unsigned_abs);
    let Some(message) = message_of(file.at(start, len)?) else {
        bail!(UNREADABLE);
    };
    let buffers = Buffers::of(&message, body)?;
    buffers.check(file, start + len)
}

/// The message of a part, behind its mark, which older files lack, and its length.
fn message_of(part: &[u8]) -> Option<Message<'_>> {
    let head = part.strip_prefix(&MESSAGE).unwrap_or(part);
    root_as_message(head.get(4..)?).ok()
}

/// Checks the messages of a stream, and that it has an end: one that was cut between two messages would look like a shorter one.
///
/// # Errors
///
/// As [`with_footer`].
pub(super) fn of_stream(path: &Path) -> Result<()> {
    let mut file = Places::open(path)?;
    let size = file.size;
    let mut at = 0;
    loop {
        ensure!(size > at, UNMARKED);
        let mut head = file.at(at, 8)?;
        if let Some(behind) = head.strip_prefix(&MESSAGE) {
            head = behind;
            at += 4;
        }
        let Some(head) = head.first_chunk() else {
            bail!(CUT);
        };
        let len = u64::from(u32::from_le_bytes(*head));
        at += 4;
        if len == 0 {
            // The stream's end.
            return Ok(());
        }
        ensure!(len <= size - at, CUT);
        let Ok(message) = root_as_message(file.at(at, len)?) else {
            bail!("it is damaged: a message of the stream cannot be read");
        };
        at += len;
        let body = u64::try_from(message.bodyLength());
        let Some(body) = body.ok().filter(|body| *body <= size - at) else {
            bail!(CUT);
        };
        let buffers = Buffers::of(&message, body)?;
        buffers.check(&mut file, at)?;
        at += body;
    }
}
