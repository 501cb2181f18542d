//! The archive: parts with a bounded size, what is missing, and the manifest that names both. All text passes
//! [`printed`].

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::printed::{self, Printer};

/// A longer part is cut.
const PART_BYTES_MAX: usize = 4 << 20;
/// Parts beyond this size together are left out.
const BUNDLE_BYTES_MAX: usize = 32 << 20;
/// The directory that everything is in.
const DIR: &str = "tailrace-support";

/// What an archive is made of.
#[derive(Default)]
pub(super) struct Bundle {
    parts: Vec<Part>,
    missing: Vec<(String, String)>,
}

/// A file of the archive.
pub(super) struct Part {
    name: String,
    what: String,
    bytes: Vec<u8>,
}

impl Bundle {
    /// Adds a text, or notes why there is none.
    pub(super) fn add(&mut self, name: &str, what: &str, text: Result<String, String>) {
        match text {
            Ok(text) => self.push(name, what, &plain(&text)),
            Err(reason) => self.miss(name, reason),
        }
    }

    /// The same of a JSON text, whose strings are redacted one by one.
    pub(super) fn add_json(&mut self, name: &str, what: &str, json: Result<String, String>) {
        match json {
            Ok(json) => self.push(name, what, &(printed::json_line(json.trim_end()) + "\n")),
            Err(reason) => self.miss(name, reason),
        }
    }

    /// Notes that a part is missing.
    pub(super) fn miss(&mut self, name: &str, reason: String) {
        self.missing.push((name.to_owned(), reason));
    }

    fn push(&mut self, name: &str, what: &str, text: &str) {
        let so_far: usize = self.parts.iter().map(|part| part.bytes.len()).sum();
        let end = text.floor_char_boundary(PART_BYTES_MAX);
        if so_far + end > BUNDLE_BYTES_MAX {
            let reason = format!("the archive is full at {} MiB", BUNDLE_BYTES_MAX >> 20);
            return self.miss(name, reason);
        }
        let cut = match end < text.len() {
            true => format!("; cut at {} MiB", PART_BYTES_MAX >> 20),
            false => String::new(),
        };
        self.parts.push(Part {
            name: name.to_owned(),
            what: format!("{what}{cut}"),
            bytes: text.as_bytes()[..end].to_vec(),
        });
    }

    /// The parts that are there.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The parts that are not, each with the reason.
    pub(super) fn missing(&self) -> &[(String, String)] {
        &self.missing
    }

    fn manifest(&self, now_s: u64) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let mut text = format!(
            "Support bundle of tailrace {version}, made at {now_s} s after 1970.\n\nIn it:\n"
        );
        for part in &self.parts {
            let (name, bytes) = (&part.name, part.bytes.len());
            text.push_str(&format!("  {name:<22} {bytes:>9} bytes  {}\n", part.what));
        }
        text.push_str("\nLeft out:\n");
        for (name, reason) in &self.missing {
            text.push_str(&format!("  {name:<22} {reason}\n"));
        }
        text.push_str(NEVER);
        plain(&text)
    }
}

const NEVER: &str = "  always: lines of logs and records; `tests` of the config, which quote them; secrets; values of ${...} and of environment variables; \
                     contents of files below the data directory
  unless --with-errors is given: texts of errors of the running agent, in which servers may quote records

Names of files, pipelines and pods are in it.
";

/// Lines that may be shown.
fn plain(text: &str) -> String {
    let mut shown = Vec::new();
    let mut printer = Printer::new(&mut shown);
    // Writing to memory cannot fail.
    let _ = printer.write_all(text.as_bytes());
    drop(printer);
    String::from_utf8_lossy(&shown).into_owned()
}

/// Makes the file of an archive, for this user alone.
///
/// # Errors
///
/// It exists, or cannot be made.
pub(super) fn create(path: &Path) -> anyhow::Result<File> {
    let shown = path.display();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            anyhow!("{shown} exists and is not overwritten: name another file with --output")
        }
        _ => anyhow!(error).context(format!(
            "{shown} cannot be made: name another place with --output, or `-` for standard output"
        )),
    })
}

/// Writes the archive.
///
/// # Errors
///
/// The stream cannot be written.
pub(super) fn write(bundle: &Bundle, to: impl Write) -> anyhow::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now.unwrap_or_default().as_secs();
    let mut tar = tar::Builder::new(GzEncoder::new(to, Compression::default()));
    append(
        &mut tar,
        "MANIFEST.txt",
        now_s,
        bundle.manifest(now_s).as_bytes(),
    )?;
    for part in &bundle.parts {
        append(&mut tar, &part.name, now_s, &part.bytes)?;
    }
    let mut to = tar
        .into_inner()
        .and_then(GzEncoder::finish)
        .context("the archive")?;
    Ok(to.flush()?)
}

fn append(
    tar: &mut tar::Builder<impl Write>,
    name: &str,
    now_s: u64,
    bytes: &[u8],
) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o600);
    header.set_mtime(now_s);
    tar.append_data(&mut header, format!("{DIR}/{name}"), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_the_whole_are_bounded() {
        let mut bundle = Bundle::default();
        for n in 0..10 {
            bundle.add(&format!("{n}.txt"), "ä", Ok("ä".repeat(PART_BYTES_MAX)));
        }
        assert_eq!(bundle.parts().len(), 8);
        assert!(
            bundle
                .parts()
                .iter()
                .all(|part| part.what == "ä; cut at 4 MiB")
        );
        let missing: Vec<&str> = bundle.missing().iter().map(|(name, _)| &**name).collect();
        assert_eq!(missing, ["8.txt", "9.txt"]);
    }

    #[test]
    fn the_manifest_names_what_is_there_and_what_is_not() {
        let mut bundle = Bundle::default();
        bundle.add("a.txt", "one", Ok("x\u{1b}\n".to_owned()));
        bundle.add_json("b.json", "two", Err("no \u{1b} reason".to_owned()));
        let manifest = bundle.manifest(7);
        for part in [
            "made at 7 s",
            "a.txt",
            "8 bytes  one\n",
            "b.json",
            "no \\u{1b} reason\n",
        ] {
            assert!(manifest.contains(part), "{part} in {manifest}");
        }
        assert_eq!(bundle.parts()[0].bytes, b"x\\u{1b}\n");
    }
}
