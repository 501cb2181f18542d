//! The lengths that an Arrow file says its parts have. Arrow's reader makes room for a part before it reads it, so a length that is
//! far beyond the file would end the process.

use std::fs::File;
use std::io::{BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use anyhow::{Result, anyhow, bail, ensure};
use arrow::datatypes::Schema;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::read_footer_length;
use arrow::ipc::{Block, root_as_footer, root_as_message};

use crate::input::Input;

/// The length of the footer and the mark behind it.
const END: u64 = 10;
/// What a message begins with, before its length.
pub(super) const MESSAGE: [u8; 4] = [0xff; 4];

const CUT: &str = "it ends too early: it was cut off, or is still being written";
const UNMARKED: &str =
    "its end is not marked: it was cut off, is still being written, or its writer was not closed";
const DAMAGED: &str = "it is damaged: a part of it is longer than the file";

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
    let mut parts = parts.chain(footer.recordBatches().into_iter().flatten());
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
    ensure!(parts.all(is_within), DAMAGED);
    // It panics at some of what is damaged.
    let schema = footer
        .schema()
        .map(|schema| catch_unwind(AssertUnwindSafe(|| fb_to_schema(schema))));
    schema
        .and_then(std::result::Result::ok)
        .ok_or_else(|| anyhow!("its footer is damaged"))
}

/// Checks the messages of a stream, and that it has an end: one that was cut between two messages would look like a shorter one.
///
/// # Errors
///
/// As [`with_footer`].
pub(super) fn of_stream(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut file = BufReader::new(file);
    let mut metadata = Vec::new();
    let mut at = 0;
    loop {
        let mut head = [0; 4];
        ensure!(size > at, UNMARKED);
        ensure!(size - at >= 4, CUT);
        file.read_exact(&mut head)?;
        at += 4;
        if head == MESSAGE {
            ensure!(size - at >= 4, CUT);
            file.read_exact(&mut head)?;
            at += 4;
        }
        let len = u32::from_le_bytes(head);
        if len == 0 {
            // The stream's end.
            return Ok(());
        }
        at += u64::from(len);
        ensure!(at <= size, CUT);
        metadata.resize(len as usize, 0);
        file.read_exact(&mut metadata)?;
        let Ok(message) = root_as_message(&metadata) else {
            bail!("it is damaged: a message of the stream cannot be read");
        };
        let body = message.bodyLength();
        ensure!(u64::try_from(body).is_ok_and(|body| body <= size - at), CUT);
        at += body as u64;
        file.seek_relative(body)?;
    }
}
