//! Following records along the templates that are known, without an index.
//!
//! Matches records against the tree of templates: for each record, the template it has and where the values of its
//! members are, or that it has none. From the literal before a value follows where the value starts, from the value
//! itself where it ends, and there the next literal must stand: a string is searched for its end, of anything else
//! every byte is read. So what was followed to its last brace is a JSON object to its bottom: nobody has to judge it
//! again. Never decides anything of a record that it cannot follow.

mod nested;
mod order;
mod plain;
mod step;
mod tree;
mod value;
mod value_span;

pub(crate) use value::behind;
pub(crate) use value_span::{Found, ValueSpan, ValueSpans};

use step::{ends_at, near, put_objects, step};
use tree::{Objects, through};

use crate::index::{Indexer, Probe, Task};
use crate::records::{BROKEN, Record, TEXT};
use crate::template::{NONE, Template, Templates};
use crate::text::{RECORD_GROUP_MAX, Span};

/// Records that are longer are not followed: a value's length has 24 bits.
pub(crate) const RECORD_BYTES_MAX: usize = (1 << 24) - 1;
/// Nor are those that end where the place after a literal might not be a `u32`.
const END_MAX: usize = u32::MAX as usize - 4096;

impl ValueSpans {
    /// Follows records of the buffer `bytes`, which lie in these spans.
    pub(crate) fn follow(
        &mut self,
        indexer: Indexer,
        templates: &Templates,
        bytes: &[u8],
        records: &[Record],
        spans: &[Span],
    ) {
        indexer.run(Follow {
            bytes,
            records,
            spans,
            templates,
            value_spans: self,
        });
    }
}

struct Follow<'f> {
    bytes: &'f [u8],
    records: &'f [Record],
    spans: &'f [Span],
    templates: &'f Templates,
    value_spans: &'f mut ValueSpans,
}

impl Task for Follow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<P: Probe>(mut self, probe: P) {
        let (records, spans) = (self.records, self.spans);
        let first = self.value_spans.found.len();
        let mut order = [0; RECORD_GROUP_MAX];
        let order = if self.value_spans.is_mixed {
            order::by_beginning(self.bytes, spans, &mut order)
        } else {
            None
        };
        match order {
            None => self.follow(probe, (0..).zip(records.iter().zip(spans))),
            Some(order) => {
                self.value_spans.is_in_order = false;
                let places = order.iter().map(|&at| usize::from(at));
                self.follow(probe, places.map(|at| (at, (&records[at], &spans[at]))));
            }
        }
        let found = &self.value_spans.found[first..];
        let changes = found
            .array_windows()
            .filter(|[a, b]| a.template != b.template);
        self.value_spans.is_mixed = changes.count() > found.len() / 4;
    }
}

impl Follow<'_> {
    /// Follows records in this order; each has its place in the record group.
    #[inline(always)]
    fn follow<'r, P: Probe>(
        &mut self,
        probe: P,
        order: impl Iterator<Item = (usize, (&'r Record, &'r Span))> + Clone,
    ) {
        let (bytes, templates) = (self.bytes, self.templates);
        let ValueSpans {
            value_spans,
            count,
            found,
            ..
        } = &mut *self.value_spans;
        let room = 2 * templates.value_spans_max();
        let base = found.len();
        found.resize(base + self.spans.len(), Found::default());
        let found = &mut found[base..];
        // The template that the last two records had: the next ones are likely to have it too.
        let (mut last, mut repeated) = (NONE, None);
        let mut rest = order;
        while let Some((at, (record, span))) = rest.next() {
            let first = *count;
            if value_spans.len() < first + room {
                value_spans.resize((first + room).next_power_of_two(), ValueSpan::default());
            }
            let slots = &mut value_spans[first..first + room];
            let mut template = NONE;
            if is_json(record, span) {
                if let Some(repeated) = repeated
                    && let mut two = rest.clone()
                    && let Some((next, (next_record, next_span))) = two.next()
                    && is_json(next_record, next_span)
                    && along(probe, bytes, [span, next_span], repeated, slots).is_some()
                {
                    let len = repeated.value_spans();
                    let place = |first| Found {
                        template: last,
                        first: first as u32,
                    };
                    found[at] = place(first);
                    found[next] = place(first + len);
                    *count += 2 * len;
                    rest = two;
                    continue;
                }
                for objects in [Objects::Split, Objects::Whole] {
                    let found = through(probe, bytes, span, templates, objects, slots);
                    template = found.unwrap_or(NONE);
                    if template != NONE || !templates.have_whole_objects() {
                        break;
                    }
                }
            }
            found[at] = Found {
                template,
                first: first as u32,
            };
            repeated = None;
            if template != NONE {
                let known = templates.get(template as usize);
                repeated = Some(known).filter(|_| template == last);
                *count += known.value_spans();
            }
            last = template;
        }
    }
}

fn is_json(record: &Record, span: &Span) -> bool {
    record.flags & (TEXT | BROKEN) == 0 && span.len() <= RECORD_BYTES_MAX && span.end() <= END_MAX
}

/// Follows two records along one template, step by step together: neither waits for what the other one looks up.
#[inline(always)]
fn along<P: Probe>(
    probe: P,
    bytes: &[u8],
    spans: [&Span; 2],
    template: &Template,
    value_spans: &mut [ValueSpan],
) -> Option<()> {
    let bytes = spans.map(|span| near(bytes, span));
    let mut at = spans.map(|span| span.start() as u32);
    let (first, second) = value_spans.split_at_mut(template.value_spans());
    for ((literal, first), second) in template.literals.iter().zip(&mut *first).zip(&mut *second) {
        (*first, at[0]) = step(probe, bytes[0], literal, at[0])?;
        (*second, at[1]) = step(probe, bytes[1], literal, at[1])?;
    }
    if template.tail.len() > 1 {
        // The last of its braces is looked for below.
        let len = template.tail.len() - 1;
        for (bytes, at) in bytes.iter().zip(&mut at) {
            *at += bytes[*at as usize..]
                .starts_with(&template.tail[..len])
                .then_some(len as u32)?;
        }
    }
    put_objects(template, first);
    put_objects(template, second);
    let is_end = |i: usize| ends_at(bytes[i], at[i] as usize, spans[i].end());
    (is_end(0) && is_end(1)).then_some(())
}
