//! From the records of a record group to rows of a batch, step by step.
//!
//! 1. Records that have a known template were followed along it (`follow`); [`Extractor::add`] groups them by template, and of
//!    each template one wanted member after the other is put into its columns for all of its records (`gather`), so that one
//!    loop does one thing.
//! 2. The others take the long way, one by one: they are indexed (`index`), their shape is checked (`shape`), their members
//!    are walked (`walker`) and set in their row (`rows`), and so are reserved columns (`reserved`).
//! 3. Whatever template such a record has is learnt (`template`), for those that come after it.
//!
//! Never reads what is not wanted; never remembers more than one batch, but for keys and templates.

use std::sync::Arc;

use tailrace_model::json;

use crate::config::{self, Config, Isa};
use crate::follow::{Found, ValueSpans};
use crate::gather::{Picked, gather};
use crate::groups::{Followed, Groups, Members, Pick};
use crate::index::{Index, Indexer};
use crate::keys::Keys;
use crate::overflow::Overflow;
use crate::plan::Plan;
use crate::records::{BROKEN, Record, Records, TEXT, TEXT_ALLOWED, TRUNCATED};
use crate::reserved::{self, Facts};
use crate::rows::{Row, Rows, Shape};
use crate::shape;
use crate::template::{Templates, WINDOW_BYTES};
use crate::text::{Buffers, RecordGroup, Span};
use crate::token::skip_whitespace;
use crate::walker;

/// Extracts the columns of one config.
#[derive(Debug)]
pub(crate) struct Extractor {
    plan: Arc<Plan>,
    keys: Keys,
    groups: Groups,
    /// Members matter: a key is wanted.
    wants_members: bool,
    /// Memory for keys with escapes.
    key: Vec<u8>,
    overflow: Overflow,
    /// Records walked so far, to tell which key was met in which record.
    walked: u64,
}

/// What the extractors of both phases share, used again for every batch.
#[derive(Debug)]
pub(crate) struct Shared {
    indexer: Indexer,
    templates: Templates,
    /// What following the records of the batch found.
    value_spans: ValueSpans,
    /// The records of a record group that were not followed, and where those of them lie that may be JSON.
    rest: Vec<Pick>,
    spans: Vec<Span>,
    /// Of those.
    index: Index,
}

/// A batch that is being scanned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) records: Records<'a>,
    pub(crate) buffers: &'a Buffers,
}

/// A record that was not followed: what it is, and the characters that part its members.
#[derive(Clone, Copy, Debug)]
struct Outlined<'a> {
    shape: Shape,
    structurals: &'a [u32],
}

impl Shared {
    /// For these instructions.
    pub(crate) fn new(isa: Isa) -> Shared {
        Shared {
            indexer: Indexer::new(isa),
            templates: Templates::new(),
            value_spans: ValueSpans::default(),
            rest: Vec::new(),
            spans: Vec::new(),
            index: Index::default(),
        }
    }

    /// Keeps at most so many bytes of each buffer, between two batches.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.value_spans.release(bytes);
        self.index.release(bytes);
    }

    /// The instructions that were chosen.
    pub(crate) fn indexer(&self) -> Indexer {
        self.indexer
    }

    /// Starts a batch. Says whether all templates were forgotten.
    pub(crate) fn start_batch(&mut self) -> bool {
        self.value_spans.clear();
        self.templates.start_batch()
    }

    /// Follows all records of a record group along the templates that are known.
    pub(crate) fn follow(&mut self, batch: &Batch<'_>, record_group: &RecordGroup<'_>) {
        let records = &batch.records.records
            [record_group.first()..record_group.first() + record_group.spans().len()];
        self.value_spans.follow(
            self.indexer,
            &self.templates,
            record_group.bytes(),
            records,
            record_group.spans(),
        );
    }
}

impl Extractor {
    /// For this config; if `whole` is given, that is the extractor of all columns, and this one of those that a condition
    /// reads.
    pub(crate) fn new(config: &Config, whole: Option<&Extractor>) -> Extractor {
        let plan = Plan::new(config, whole.map(|whole| &*whole.plan));
        let config::Star {
            except,
            kept,
            columns_max,
            ..
        } = config.star.clone().unwrap_or_default();
        let wanted = plan
            .keys
            .iter()
            .map(|(key, targets)| (key.as_str(), targets.clone()));
        let columns_max = config.star.is_some().then_some(columns_max);
        let keys = Keys::new(wanted, &except, &kept, columns_max).noting(config.unwanted.as_ref());
        Extractor {
            wants_members: !plan.keys.is_empty() || keys.wants_all(),
            plan: Arc::new(plan),
            keys,
            groups: Groups::default(),
            key: Vec::new(),
            overflow: Overflow::default(),
            walked: 0,
        }
    }

    /// What the rows of a batch are made by.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan)
    }

    /// The keys met so far.
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Starts a batch.
    pub(crate) fn start_batch(&mut self) {
        const KEPT: usize = 64 * 1024;
        self.key.clear();
        self.key.shrink_to(KEPT);
    }

    /// Forgets all templates: their numbers are given anew.
    pub(crate) fn forget_templates(&mut self) {
        self.groups.forget_templates();
    }

    /// Sets rows for some records of a record group that was followed: those with these places in the record group, each with its row. What
    /// templates there may be is told by `keys`, or else by those of this extractor.
    pub(crate) fn add(
        &mut self,
        shared: &mut Shared,
        batch: &Batch<'_>,
        record_group: &RecordGroup<'_>,
        picks: impl Iterator<Item = (u32, u32)>,
        keys: Option<&Keys>,
        rows: &mut Rows<'_>,
    ) {
        let followed = Followed {
            record_group: *record_group,
            found: &shared.value_spans.found()
                [record_group.first()..record_group.first() + record_group.spans().len()],
            value_spans: shared.value_spans.value_spans(),
            is_in_order: shared.value_spans.is_in_order(),
        };
        shared.rest.clear();
        self.add_followed(
            batch,
            &followed,
            &shared.templates,
            picks,
            rows,
            &mut shared.rest,
        );
        if !shared.rest.is_empty() {
            self.add_rest(shared, batch, record_group, keys, rows);
        }
    }

    /// Groups the records of a record group by template, and sets the rows of those whose template was found; the others join `rest`, in order.
    fn add_followed(
        &mut self,
        batch: &Batch<'_>,
        followed: &Followed<'_>,
        templates: &Templates,
        picks: impl Iterator<Item = (u32, u32)>,
        rows: &mut Rows<'_>,
        rest: &mut Vec<Pick>,
    ) {
        self.groups.reserve(templates);
        let first = followed.record_group.first();
        let records = &batch.records.records[first..first + followed.found.len()];
        let mut picks = picks.peekable();
        // The records of one template that follow each other join its group together.
        while let Some(&(at, _)) = picks.peek() {
            let template = followed.found[at as usize].template;
            let group = self.groups.of(template).unwrap_or(rest);
            let is_alike = |(at, _): &(u32, u32)| {
                let found = followed.found.get(*at as usize);
                found.is_some_and(|found| found.template == template)
            };
            while let Some((at, row)) = picks.next_if(is_alike) {
                if records[at as usize].flags & TRUNCATED != 0 {
                    rows.mark_truncated(row as usize);
                }
                let Found { first, .. } = followed.found[at as usize];
                group.push(Pick { at, first, row });
            }
        }
        let direct = rest.len();
        while let Some((number, group)) = self.groups.take(templates, &self.plan, &mut self.keys) {
            match &group.members {
                Some(members) => self.add_group(batch, followed, members, &group.picks, rows),
                None => rest.extend_from_slice(&group.picks),
            }
            self.groups.put_back(number, group);
        }
        if rest.len() > direct {
            rest.sort_unstable_by_key(|pick| pick.at);
        }
    }

    /// Sets the rows of records that all have one template, whose members are these.
    fn add_group(
        &mut self,
        batch: &Batch<'_>,
        followed: &Followed<'_>,
        members: &Members,
        picks: &[Pick],
        rows: &mut Rows<'_>,
    ) {
        let picked = Picked::new(followed, picks, members.count);
        for member in &members.wanted {
            gather(followed, member, &picked, rows);
        }
        if self.plan.reserved.is_empty() {
            return;
        }
        for pick in picks {
            let number = followed.record_group.first() + pick.at as usize;
            let text = batch.buffers.record(number);
            let mut row = Row::new(rows, pick.row as usize, text, &mut self.overflow);
            for member in members.wanted.iter().filter(|member| member.is_candidate) {
                let value_span = followed.value_spans[pick.first as usize + member.place as usize];
                row.take_candidate(member, value_span);
            }
            // What could be followed is JSON.
            reserved::set(&mut row, &facts(batch, number, Shape::Object, false));
        }
    }

    /// Sets rows for the records of a record group that were not followed, and learns their templates.
    fn add_rest(
        &mut self,
        shared: &mut Shared,
        batch: &Batch<'_>,
        record_group: &RecordGroup<'_>,
        keys: Option<&Keys>,
        rows: &mut Rows<'_>,
    ) {
        let bytes = record_group.bytes();
        let of_record_group = &batch.records.records[record_group.first()..];
        let may_be_json =
            |pick: &&Pick| of_record_group[pick.at as usize].flags & (TEXT | BROKEN) == 0;
        let json = shared.rest.iter().filter(may_be_json);
        shared.spans.clear();
        shared
            .spans
            .extend(json.map(|pick| record_group.spans()[pick.at as usize]));
        shared.index.clear();
        shared
            .indexer
            .index(bytes, &shared.spans, &mut shared.index);
        let mut indexed = 0;
        for pick in &shared.rest {
            let record = &of_record_group[pick.at as usize];
            let mut outlined = Outlined {
                shape: Shape::Text,
                structurals: &[],
            };
            if may_be_json(&pick) {
                let (span, number) = (shared.spans[indexed], indexed);
                indexed += 1;
                outlined.shape = shape_of(bytes, span, record, &mut shared.index, number);
                outlined.structurals = shared.index.record(number);
            } else if record.flags & BROKEN != 0 {
                outlined.shape = Shape::Malformed;
            }
            let number = record_group.first() + pick.at as usize;
            self.add_outlined(batch, &outlined, number, pick.row as usize, rows);
            // One at the buffer's end was not looked at: its template may be known.
            let end = record_group.spans()[pick.at as usize].end();
            if outlined.shape == Shape::Object && end + WINDOW_BYTES <= bytes.len() {
                let keys = keys.unwrap_or(&self.keys);
                let key_use = |name: &str| keys.key_use(name);
                shared.templates.learn(bytes, outlined.structurals, key_use);
            }
        }
    }

    /// Sets the row of one record by itself: it is walked, or no object.
    fn add_outlined(
        &mut self,
        batch: &Batch<'_>,
        outlined: &Outlined<'_>,
        number: usize,
        slot: usize,
        rows: &mut Rows<'_>,
    ) {
        let text = batch.buffers.record(number);
        let shape = outlined.shape;
        let mut row = Row::new(rows, slot, text, &mut self.overflow);
        if shape == Shape::Object && self.wants_members {
            self.walked += 1;
            walker::walk(
                &text,
                outlined.structurals,
                self.walked,
                &mut self.keys,
                &mut self.key,
                &mut row,
            );
        }
        // A walk over all members has judged all.
        let is_bad = row.is_bad
            || self.plan.judges_all
                && !self.keys.wants_all()
                && json::parse_value(text.text()).is_none();
        let is_object = shape == Shape::Object;
        let is_malformed = shape == Shape::Malformed || is_object && is_bad;
        reserved::set(&mut row, &facts(batch, number, shape, is_malformed));
        if is_object {
            rows.finish_object(slot, &mut self.overflow);
        }
        if is_malformed || !is_object {
            rows.keep_raw(slot, &text, is_malformed);
        }
    }
}

/// What the indexed record with this number is.
fn shape_of(bytes: &[u8], span: Span, record: &Record, index: &mut Index, number: usize) -> Shape {
    let (outline, structurals) = index.record_mut(number);
    if shape::is_object(bytes, span, outline, structurals) {
        return Shape::Object;
    }
    let text = &bytes[..span.end()];
    let is_text = record.flags & TEXT_ALLOWED != 0
        && text.get(skip_whitespace(text, span.start())) != Some(&b'{');
    if is_text {
        Shape::Text
    } else {
        Shape::Malformed
    }
}

fn facts(batch: &Batch<'_>, number: usize, shape: Shape, is_malformed: bool) -> Facts {
    let records = &batch.records;
    Facts {
        shape,
        is_malformed,
        truncated: records.records[number].flags & TRUNCATED != 0,
        time_ns: records.times.get(number).copied().unwrap_or(0),
        stream: records.streams.get(number).copied().unwrap_or(0),
        observed_ns: records.observed_ns,
    }
}
