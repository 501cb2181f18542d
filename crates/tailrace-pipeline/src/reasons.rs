//! The recent reasons why records, lines and files did not go the usual way, for people: the last few of each kind, with
//! how often each was met. All pipelines of an agent share one list, which is bounded in number and in bytes.
//!
//! It is told at most a few times per batch, and nothing while all is well. It holds text from outside: whoever shows it
//! escapes and redacts it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::health::Stage;

/// What became of a record, a line or a file: a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReasonKind {
    /// Lines that are not what the input's format says, or not JSON as far as the query reads them.
    Malformed,
    /// Records that were cut at the maximum size.
    Truncated,
    /// Records for which an expression of the query failed.
    FailedExpression,
    /// Records that made the agent panic or die.
    Crashed,
    /// Records that the server rejected; with a dead-letter entry or without.
    Rejected,
    /// Records that were given up, as configured.
    Dropped,
    /// Bytes or files that are lost.
    Lost,
    /// Files that were truncated or replaced in place.
    FileTruncated,
    /// Files and directories that the agent may not read.
    Denied,
    /// Files that could not be read for another reason.
    ReadError,
    /// Attempts that failed and are repeated.
    Retry,
    /// Requests that the server refuses, so that the output holds.
    Refused,
}

impl ReasonKind {
    /// Every kind, in the order of their declaration.
    pub const ALL: [Self; 12] = [
        Self::Malformed,
        Self::Truncated,
        Self::FailedExpression,
        Self::Crashed,
        Self::Rejected,
        Self::Dropped,
        Self::Lost,
        Self::FileTruncated,
        Self::Denied,
        Self::ReadError,
        Self::Retry,
        Self::Refused,
    ];

    /// Its name for people and programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Truncated => "truncated",
            Self::FailedExpression => "failed_expression",
            Self::Crashed => "crashed",
            Self::Rejected => "rejected",
            Self::Dropped => "dropped",
            Self::Lost => "lost",
            Self::FileTruncated => "file_truncated",
            Self::Denied => "denied",
            Self::ReadError => "read_error",
            Self::Retry => "retry",
            Self::Refused => "refused",
        }
    }
}

/// A reason that was met, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// When it was met last.
    pub at: SystemTime,
    /// Name of the pipeline.
    pub pipeline: String,
    /// Where it was met.
    pub stage: Stage,
    /// What became of what it concerns.
    pub kind: ReasonKind,
    /// What it is about: the path of a file, the name of an output, a column or a condition of the query. It may have
    /// [`Self::TEXT_BYTES_MAX`] and [`Self::BEYOND_BYTES`].
    pub subject: String,
    /// What happened, as long as the subject.
    pub reason: String,
    /// How many records, or files, or attempts, while it was in the list.
    pub count: u64,
    /// One of the records; only where examples are kept. It may have [`Self::EXAMPLE_BYTES_MAX`] and
    /// [`Self::BEYOND_BYTES`].
    pub example: Option<String>,
}

impl Reason {
    /// A longer subject or reason is cut by whoever shows it.
    pub const TEXT_BYTES_MAX: usize = 512;
    /// What is shown of an example is shorter than this.
    pub const EXAMPLE_BYTES_MAX: usize = 1024;
    /// So much more is kept: who shows a text redacts it before it is cut, as half a secret would not be recognised.
    pub const BEYOND_BYTES: usize = 4096;
}

/// A reason that is met now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Met<'a> {
    pub(crate) pipeline: &'a str,
    pub(crate) stage: Stage,
    pub(crate) kind: ReasonKind,
    pub(crate) subject: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) count: u64,
}

/// The last reasons of each kind.
#[derive(Debug, Default)]
pub(crate) struct Reasons {
    /// By kind, the newest first.
    kinds: Mutex<[VecDeque<Arc<Reason>>; ReasonKind::ALL.len()]>,
    keeps_examples: AtomicBool,
}

/// So many of each kind.
const KEPT: usize = 10;
/// A longer subject, reason or example is cut.
const TEXT_BYTES_KEPT: usize = Reason::TEXT_BYTES_MAX + Reason::BEYOND_BYTES;
const EXAMPLE_BYTES_KEPT: usize = Reason::EXAMPLE_BYTES_MAX + Reason::BEYOND_BYTES;

impl Reasons {
    /// Adds a reason, or counts it again; it is the newest of its kind then.
    pub(crate) fn note(&self, met: Met<'_>) {
        self.note_with(met, || None);
    }

    /// Like [`Self::note`], with one of the records it is about, which is asked for only where examples are kept.
    pub(crate) fn note_with(&self, met: Met<'_>, example: impl FnOnce() -> Option<String>) {
        let (subject, reason) = (
            cut(met.subject, TEXT_BYTES_KEPT),
            cut(met.reason, TEXT_BYTES_KEPT),
        );
        let example = self
            .keeps_examples
            .load(Ordering::Relaxed)
            .then(example)
            .flatten();
        let example = example.map(|line| cut(&line, EXAMPLE_BYTES_KEPT).to_owned());
        let mut kinds = self.lock();
        let list = &mut kinds[met.kind as usize];
        let is_same = |known: &Arc<Reason>| {
            known.subject == subject
                && known.reason == reason
                && known.pipeline == met.pipeline
                && known.stage == met.stage
        };
        let known = list.iter().position(is_same).and_then(|at| list.remove(at));
        let mut of_list = known.unwrap_or_else(|| {
            Arc::new(Reason {
                at: SystemTime::UNIX_EPOCH,
                pipeline: met.pipeline.to_owned(),
                stage: met.stage,
                kind: met.kind,
                subject: subject.to_owned(),
                reason: reason.to_owned(),
                count: 0,
                example: None,
            })
        });
        // Copied only while somebody reads it.
        let newest = Arc::make_mut(&mut of_list);
        newest.at = SystemTime::now();
        newest.count = newest.count.saturating_add(met.count);
        newest.example = example.or_else(|| newest.example.take());
        list.push_front(of_list);
        list.truncate(KEPT);
    }

    /// Whether examples are kept now.
    pub(crate) fn keeps_examples(&self) -> bool {
        self.keeps_examples.load(Ordering::Relaxed)
    }

    /// Whether examples are kept from now on; without, those that are there are forgotten.
    pub(crate) fn keep_examples(&self, is_wanted: bool) {
        self.keeps_examples.store(is_wanted, Ordering::Relaxed);
        if !is_wanted {
            let mut kinds = self.lock();
            for reason in kinds.iter_mut().flatten() {
                Arc::make_mut(reason).example = None;
            }
        }
    }

    /// All of them, the newest first.
    pub(crate) fn all(&self) -> Vec<Arc<Reason>> {
        // Workers take the lock: the texts are not copied.
        let mut all: Vec<Arc<Reason>> = self.lock().iter().flatten().cloned().collect();
        all.sort_by_key(|reason| std::cmp::Reverse(reason.at));
        all
    }

    fn lock(&self) -> MutexGuard<'_, [VecDeque<Arc<Reason>>; ReasonKind::ALL.len()]> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The beginning of a text, of so many bytes at most.
fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met<'a>(kind: ReasonKind, subject: &'a str) -> Met<'a> {
        Met {
            pipeline: "app",
            stage: Stage::Input,
            kind,
            subject,
            reason: "why",
            count: 2,
        }
    }

    #[test]
    fn the_last_ten_of_each_kind_are_kept_newest_first() {
        let reasons = Reasons::default();
        for n in 0..100 {
            reasons.note(met(ReasonKind::Lost, &format!("/lost/{n}")));
        }
        reasons.note(met(ReasonKind::Denied, "/denied"));
        let all = reasons.all();
        assert_eq!(all.len(), KEPT + 1);
        let lost = all.iter().filter(|it| it.kind == ReasonKind::Lost);
        let lost: Vec<&str> = lost.map(|it| it.subject.as_str()).collect();
        assert_eq!((lost[0], lost[9]), ("/lost/99", "/lost/90"));
        assert!(all.is_sorted_by(|a, b| a.at >= b.at));
    }

    #[test]
    fn the_same_reason_is_counted_and_becomes_the_newest() {
        let reasons = Reasons::default();
        for subject in ["/a", "/b", "/a", "/a"] {
            reasons.note(met(ReasonKind::Lost, subject));
        }
        reasons.note(Met {
            pipeline: "other",
            ..met(ReasonKind::Lost, "/a")
        });
        let kinds = reasons.lock();
        let lost = &kinds[ReasonKind::Lost as usize];
        let found: Vec<_> = lost
            .iter()
            .map(|it| (it.pipeline.as_str(), it.subject.as_str(), it.count))
            .collect();
        assert_eq!(
            found,
            [("other", "/a", 2), ("app", "/a", 6), ("app", "/b", 2)]
        );
    }

    #[test]
    fn texts_are_bounded_and_cut_between_characters() {
        let reasons = Reasons::default();
        reasons.keep_examples(true);
        let long = "ä".repeat(100_000);
        let met = Met {
            reason: &long,
            ..met(ReasonKind::Malformed, &long)
        };
        reasons.note_with(met, || Some(format!("x{long}")));
        reasons.note_with(met, || None);
        let [reason] = &reasons.all()[..] else {
            panic!("not one reason");
        };
        assert_eq!((reason.subject.len(), reason.reason.len()), (4608, 4608));
        assert_eq!(reason.count, 4, "a cut text is still the same");
        assert_eq!(reason.example.as_ref().map(String::len), Some(5119));
    }

    #[test]
    fn what_a_reader_has_does_not_change_and_is_not_copied() {
        let reasons = Reasons::default();
        reasons.note(met(ReasonKind::Lost, "/a"));
        let (read, again) = (reasons.all(), reasons.all());
        assert!(Arc::ptr_eq(&read[0], &again[0]));
        reasons.note(met(ReasonKind::Lost, "/a"));
        assert_eq!((read[0].count, reasons.all()[0].count), (2, 4));
    }

    #[test]
    fn an_example_is_asked_for_and_kept_only_where_it_is_wanted() {
        let reasons = Reasons::default();
        let met = met(ReasonKind::Malformed, "/a");
        reasons.note_with(met, || panic!("nobody wants an example"));
        reasons.keep_examples(true);
        reasons.note_with(met, || Some("a line".to_owned()));
        assert_eq!(reasons.all()[0].example.as_deref(), Some("a line"));
        reasons.keep_examples(false);
        assert_eq!(reasons.all()[0].example, None);
    }

    #[test]
    fn every_kind_has_a_place_and_a_name_of_its_own() {
        let mut names = std::collections::BTreeSet::new();
        for (at, kind) in ReasonKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
            assert!(names.insert(kind.as_str()));
        }
    }
}
