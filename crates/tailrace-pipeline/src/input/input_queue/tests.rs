//! One newline search goes over a buffer in which chunks of several sources stand, and some of them are not framed.

use std::path::PathBuf;
use std::time::Instant;

use prometheus_client::registry::Registry;
use tailrace_frame::{Flags, SIDE};
use tailrace_inputs::checkpoint::Rest;
use tailrace_model::json::Step;
use tailrace_scan::{Column, ColumnSource, Config, Needle, Needles, Records, Scanner, Type};

use super::spans::extend_spans;
use super::*;
use crate::metrics::Metrics;
use crate::process::transform::scan_records;
use crate::watermark::{Opening, Resumed};
use tailrace_inputs::checkpoint::Counts;

/// Finds the records in which the text `"x"`, quotes and all, may stand.
fn scanner() -> Scanner {
    let needle = Needle {
        text: "x".into(),
        quoted: true,
    };
    let column = Column {
        name: "a".into(),
        source: ColumnSource::Key(vec![Step::Key("a".into())]),
        ty: Type::Text,
    };
    Scanner::new(Config {
        columns: vec![column],
        first: vec![0],
        prefilter: vec![Needles { any: vec![needle] }],
        ..Config::default()
    })
}

fn queue(records_max: usize) -> InputQueue {
    queue_with(records_max, Overflow::new(usize::MAX, PathBuf::new()))
}

fn queue_with(records_max: usize, overflow: Overflow) -> InputQueue {
    let facts = FactsConfig {
        resource: Vec::new(),
        encodings: Vec::new(),
        files: true,
        framing: None,
        pods: None,
    };
    InputQueue::new(
        tailrace_frame::Config::default(),
        facts,
        Arc::new(Tracker::new(1, u64::MAX)),
        Orders::new([false].into_iter()),
        1 << 20,
        records_max,
        overflow,
    )
}

/// A source that the tracker knows, and the event that makes it known to the input queue.
fn open(queue: &InputQueue) -> (Slot, SourceEvent) {
    let path: std::sync::Arc<std::path::Path> = PathBuf::from("/var/log/app.log").into();
    let slot = queue.tracker.open(Opening {
        id: None,
        generation: 0,
        path: path.clone(),
        origin: None,
        offset: 0,
        size: 1 << 20,
        replay_to: 0,
        resume: Vec::new(),
    });
    let opened = SourceEvent::Opened {
        slot,
        replaces: None,
        path,
        offset: 0,
        mid_line: false,
        replay_to: 0,
    };
    (slot, opened)
}

/// Frames a batch of these chunks, one behind the other in one buffer.
fn frame(
    queue: &InputQueue,
    scanner: &Scanner,
    mut events: Vec<SourceEvent>,
    chunks: &[(Slot, &str)],
) -> Framed {
    let mut bytes = String::new();
    for &(slot, chunk) in chunks {
        let start = bytes.len();
        bytes.push_str(chunk);
        let end = bytes.len();
        events.push(SourceEvent::Chunk { slot, start, end });
    }
    queue.batches.push(RawBatch {
        bytes: bytes.into(),
        events,
        credit: None,
        room: queue.batches.room.reserve(1 << 20, || ()),
        observed_ns: 0,
        read_at: Instant::now(),
        cuts: 0,
    });
    assert_eq!(queue.batches.room.used(), 1 << 20);
    // In memory that was used before.
    let mut used = Framed::default();
    Framer::new(&queue.frame, 0, false).push(b"{}\n\n{}\n", 0, 0, &mut used.frames);
    let mut memory = used.take_memory();
    let (framed, is_cut) = queue
        .frame_next(scanner.searcher(true), &mut memory)
        .unwrap();
    assert_eq!((queue.batches.room.used(), is_cut), (0, false));
    framed
}

#[test]
fn blank_lines_are_counted() {
    let (queue, scanner) = (queue(usize::MAX), scanner());
    let (slot, opened) = open(&queue);
    let framed = frame(
        &queue,
        &scanner,
        vec![opened],
        &[(slot, "{}\n\n \t\r\n{}\n")],
    );
    let metrics = Metrics::register(&mut Registry::default()).pipeline("app", &[]);
    framed.count(&metrics);
    assert_eq!((metrics.records.get(), metrics.blank_lines.get()), (2, 2));
}

#[test]
fn a_record_that_began_before_a_rotation_stands_where_it_ends() {
    let (queue, scanner) = (queue(usize::MAX), scanner());
    let ((earlier, a), (slot, mut b)) = (open(&queue), open(&queue));
    let [part, rest, other] = ["P one, ", "F two", "F three"]
        .map(|text| format!("2026-01-02T03:04:05.000000001Z stdout {text}\n"));
    let (part_len, rest_len) = (part.len() as u64, rest.len() as u64);
    let framed = frame(&queue, &scanner, vec![a], &[(earlier, &part)]);
    assert_eq!((framed.frames.records.len(), framed.spans.len()), (0, 0));
    if let SourceEvent::Opened { replay_to, .. } = &mut b {
        *replay_to = rest_len;
    }
    let goes_on = SourceEvent::Continues {
        slot,
        earlier,
        head: Vec::new(),
    };
    let chunk = rest + &other;
    let framed = frame(&queue, &scanner, vec![b, goes_on], &[(slot, &chunk)]);
    let end = chunk.len() as u64;
    let span = |slot, end, records| Span {
        slot,
        start: 0,
        end,
        records,
    };
    assert_eq!(
        framed.spans,
        [span(earlier, part_len, 0), span(slot, end, 2)]
    );
    let ends = framed
        .locations
        .ends()
        .map(|(slot, ends)| (slot, ends.collect()));
    assert_eq!(Vec::from_iter(ends), [(slot, vec![rest_len, end])]);
    assert_eq!(framed.replayed, 1);
}

#[test]
fn what_the_checkpoint_knows_of_a_record_from_the_file_before_is_no_whole_record() {
    let line = |text: &str| format!("2026-01-02T03:04:05.000000001Z stdout {text}\n");
    let (rest, next) = (line("F rest"), line("F next"));
    let text = rest.clone() + &next;
    let known = |end, is_acked| Rest {
        stream: 1,
        end,
        is_acked,
    };
    let end = rest.len() as u64;
    for (known, expected) in [
        (
            vec![known(u64::MAX, false)],
            &[("rest", true), ("next", false)][..],
        ),
        (vec![known(end, true)], &[("next", false)]),
        (Vec::new(), &[("rest", false), ("next", false)]),
    ] {
        let (queue, scanner) = (queue(usize::MAX), scanner());
        let (slot, opened) = open(&queue);
        let is_known = !known.is_empty();
        queue.tracker.resume_rests(slot, known);
        let framed = frame(&queue, &scanner, vec![opened], &[(slot, &text)]);
        let records = framed.frames.records.iter().map(|record| {
            let buffer = &framed.buffers[usize::from(record.buffer == SIDE)];
            let text = &buffer[record.start as usize..record.end as usize];
            let is_truncated = record.flags.contains(Flags::TRUNCATED);
            (String::from_utf8_lossy(text).into_owned(), is_truncated)
        });
        let expected = expected
            .iter()
            .map(|(text, cut)| ((*text).to_owned(), *cut));
        assert_eq!(Vec::from_iter(records), Vec::from_iter(expected));
        let ends = queue.tracker.rests(slot).iter().map(|rest| rest.end).max();
        assert_eq!(
            ends,
            is_known.then_some(end),
            "now it is known where it ends"
        );
    }
}

#[test]
fn a_restart_between_the_parts_of_a_record_reads_all_of_them() {
    let (queue, scanner) = (queue(usize::MAX), scanner());
    let (slot, opened) = open(&queue);
    let line = |text: &str| format!("2026-01-02T03:04:05.000000001Z {text}\n");
    let [one, other, two] = ["stdout P one", "stderr F other", "stdout F two"].map(line);
    let early = frame(
        &queue,
        &scanner,
        vec![opened],
        &[(slot, &(one.clone() + &other))],
    );
    let late = frame(&queue, &scanner, Vec::new(), &[(slot, &two)]);
    let ack = |framed: &Framed| {
        let spans: Vec<_> = framed
            .spans
            .iter()
            .map(|span| (*span, Counts::default()))
            .collect();
        queue.tracker.ack(0, &spans);
    };
    let lowest = || queue.tracker.lowest(slot);
    // The later request is accepted, the earlier one waits.
    ack(&late);
    assert_eq!(lowest(), 0, "else the second part would come alone");
    ack(&early);
    assert_eq!(lowest(), (one.len() + other.len() + two.len()) as u64);
}

#[test]
fn a_record_that_goes_on_in_the_next_file_is_noted_there() {
    let (queue, scanner) = (queue(usize::MAX), scanner());
    let ((earlier, a), (slot, b)) = (open(&queue), open(&queue));
    let line = |text: &str| format!("2026-01-02T03:04:05.000000001Z stderr {text}\n");
    frame(&queue, &scanner, vec![a], &[(earlier, &line("P one"))]);
    let continues = SourceEvent::Continues {
        slot,
        earlier,
        head: Vec::new(),
    };
    let ends = |slot| -> Vec<_> {
        let rests = queue.tracker.rests(slot);
        rests
            .iter()
            .map(|rest| (rest.stream, rest.end, rest.is_acked))
            .collect()
    };
    frame(
        &queue,
        &scanner,
        vec![b, continues],
        &[(slot, &line("P two"))],
    );
    assert_eq!(
        (ends(earlier), ends(slot)),
        (Vec::new(), vec![(2, u64::MAX, false)])
    );
    frame(&queue, &scanner, Vec::new(), &[(slot, &line("F three"))]);
    let end = (line("P two").len() + line("F three").len()) as u64;
    assert_eq!(ends(slot), [(2, end, false)]);
}

#[test]
fn chunks_that_are_not_framed_do_not_shift_those_behind_them() {
    let (queue, mut scanner) = (queue(usize::MAX), scanner());
    let ((first, a), (out, b), (last, c)) = (open(&queue), open(&queue), open(&queue));
    frame(&queue, &scanner, vec![a, b, c], &[]);
    let mut sources = queue.sources.lock().unwrap();
    sources.get_mut(out).unwrap().facts.excluded = Some("a rule");
    drop(sources);
    let unknown = Slot(last.0 + 1);
    let (hit, miss) = ("{\"a\":\"x\"}\n", "{\"a\":\"yes\"}\n");
    let (hits, misses) = (hit.repeat(3), miss.repeat(30));
    for passed_over in [[out, out], [unknown, unknown], [out, unknown]] {
        let [one, other] = passed_over;
        let chunks = [
            (first, misses.as_str()),
            (one, &hits),
            (last, hit),
            (last, &misses),
            (other, &misses),
            (other, &hits),
            (first, hit),
        ];
        let framed = frame(&queue, &scanner, Vec::new(), &chunks);
        let content = |record| framed.frames.content(record, &framed.buffers[0]);
        let contents = framed.frames.records.iter().map(content);
        let expect = [&misses, hit, &misses, hit].concat();
        assert!(contents.eq(expect.lines().map(str::as_bytes)));
        let mut numbered = Vec::new();
        scan_records(&framed.frames.records, &mut numbered);
        let records = Records {
            buffers: &framed.buffers,
            records: &numbered,
            times: &[],
            streams: &[],
            observed_ns: 0,
            searched: framed.searched.as_ref(),
        };
        assert!(framed.searched.is_some());
        let found = scanner.first(&records);
        assert_eq!(found.rows, Some(vec![30, 61]));
    }
}

#[test]
fn the_beginning_of_a_record_whose_rest_is_lost_is_truncated() {
    for (text, is_cut) in [("amount=123", true), ("amount=1234567890", false)] {
        let (queue, scanner) = (queue(usize::MAX), scanner());
        let (slot, opened) = open(&queue);
        let framed = self::frame(&queue, &scanner, vec![opened], &[(slot, text)]);
        assert_eq!(framed.frames.records.len(), 0);
        let finished = vec![SourceEvent::Finished { slot, is_cut }];
        let framed = self::frame(&queue, &scanner, finished, &[]);
        assert_eq!(framed.line(0), text.as_bytes());
        let flags = framed.frames.records[0].flags;
        assert_eq!(flags.contains(Flags::TRUNCATED), is_cut);
    }
}

#[test]
fn a_batch_of_many_records_is_framed_in_parts() {
    let text: String = (0..40).map(|i| format!("{{\"a\":{i}}}\n\n")).collect();
    let (one, other) = text.split_at(text.len() / 3);
    let whole = {
        let (queue, scanner) = (queue(usize::MAX), scanner());
        let ((first, a), (last, b)) = (open(&queue), open(&queue));
        frame(
            &queue,
            &scanner,
            vec![a, b],
            &[(first, one), (last, other), (first, other)],
        )
    };
    let contents = |framed: &Framed| -> Vec<Vec<u8>> {
        let records = framed.frames.records.iter();
        records
            .enumerate()
            .map(|(at, _)| framed.line(at).to_vec())
            .collect()
    };
    for max in 1..50 {
        let (queue, scanner) = (queue(max), scanner());
        let credit =
            crate::delivery::credit::Credit::new(1 << 20, crate::delivery::credit::Shares::new(1));
        let ((first, a), (last, b)) = (open(&queue), open(&queue));
        let bytes = [one, other, other].concat();
        let ends = [0, one.len(), text.len(), text.len() + other.len()];
        let chunk = |(slot, n): (Slot, usize)| SourceEvent::Chunk {
            slot,
            start: ends[n],
            end: ends[n + 1],
        };
        let chunks = [(first, 0), (last, 1), (first, 2)].map(chunk);
        let len = bytes.len() as u64;
        queue.batches.push(RawBatch {
            bytes: bytes.into(),
            events: [a, b].into_iter().chain(chunks).collect(),
            credit: credit.reserve(len, || ()),
            room: None,
            observed_ns: 7,
            read_at: Instant::now(),
            cuts: 0,
        });
        let (mut records, mut spans, mut held) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let searcher = scanner.searcher(true);
            let (mut framed, is_cut) = queue.frame_next(searcher, &mut Frames::default()).unwrap();
            // A line that was begun before the chunk is one more.
            assert!(framed.frames.records.len() <= max + 1 && framed.observed_ns == 7);
            assert!(is_cut || framed.searched.is_some());
            records.extend(contents(&framed));
            for span in framed.spans.drain(..) {
                extend_spans(&mut spans, span);
            }
            held.push(framed.credit.take().expect("a part has its share"));
            if !is_cut {
                break;
            }
        }
        assert_eq!(records, contents(&whole));
        assert!(
            held.len() >= records.len() / max,
            "{} of {}",
            held.len(),
            records.len()
        );
        spans.sort_unstable_by_key(|span| (span.slot, span.start));
        let mut merged = Vec::new();
        spans
            .into_iter()
            .for_each(|span| extend_spans(&mut merged, span));
        let same = |a: &Span, b: &Span| (a.start, a.end, a.records) == (b.start, b.end, b.records);
        assert!(merged.iter().zip(&whole.spans).all(|(a, b)| same(a, b)));
        assert_eq!(merged.len(), whole.spans.len());
        assert_eq!(credit.used(), len);
        drop(held);
        assert_eq!(credit.used(), 0);
    }
}

/// Lines, partial lines and traces that are finished many batches later, of several sources.
#[test]
fn what_is_held_in_a_file_is_what_was_held_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let part =
        |n: usize, what: &str| format!("2026-01-02T03:04:05Z stdout {what} {}\n", "x".repeat(n));
    let pieces = |n: usize| {
        let long = "y".repeat(9000 + n);
        let (cri, end) = (part(6000 + n, "P"), part(5 + n, "F"));
        [
            cri + &long[..5000],
            long[5000..].to_owned() + "\n" + &part(7000, "P"),
            end,
        ]
    };
    let run = |overflow: Overflow| {
        let (queue, scanner) = (queue_with(usize::MAX, overflow), scanner());
        let (slots, opened): (Vec<Slot>, Vec<SourceEvent>) = (0..20).map(|_| open(&queue)).unzip();
        let mut out = vec![frame(&queue, &scanner, opened, &[])];
        for round in 0..3 {
            for (n, &slot) in slots.iter().enumerate() {
                let piece = &pieces(n)[round];
                out.push(frame(&queue, &scanner, Vec::new(), &[(slot, piece)]));
            }
        }
        let slot = slots[3];
        let line = "z".repeat(50_000);
        out.push(frame(&queue, &scanner, Vec::new(), &[(slot, &line)]));
        out.push(frame(
            &queue,
            &scanner,
            vec![SourceEvent::Finished {
                slot,
                is_cut: false,
            }],
            &[],
        ));
        let described = |framed: &Framed| {
            let lines = (0..framed.frames.records.len()).map(|at| framed.line(at).to_vec());
            let heads: Vec<_> = framed
                .frames
                .records
                .iter()
                .map(|it| (it.flags, it.time_ns))
                .collect();
            (
                lines.collect::<Vec<_>>(),
                heads,
                framed.spans.clone(),
                framed.frames.skips.clone(),
            )
        };
        let stowed = queue.sources.lock().unwrap().stowed();
        (out.iter().map(described).collect::<Vec<_>>(), stowed)
    };
    let (expect, none) = run(Overflow::new(usize::MAX, PathBuf::new()));
    let (all, stowed) = run(Overflow::new(0, dir.path().to_owned()));
    assert_eq!(
        (none, stowed),
        (0, 20 + 20 + 1),
        "the last round leaves nothing"
    );
    assert_eq!(all, expect);
    // Where there is no place for a file it stays in memory.
    assert_eq!(run(Overflow::new(0, "/nonexistent".into())), (expect, 0));
}

#[test]
fn what_many_sources_hold_does_not_end_in_one_batch() {
    let dir = tempfile::tempdir().unwrap();
    let queue = queue_with(usize::MAX, Overflow::new(1 << 20, dir.path().to_owned()));
    let scanner = scanner();
    let (slots, opened): (Vec<Slot>, Vec<SourceEvent>) = (0..40).map(|_| open(&queue)).unzip();
    frame(&queue, &scanner, opened, &[]);
    let line = "z".repeat(900_000);
    for &slot in &slots {
        frame(&queue, &scanner, Vec::new(), &[(slot, &line)]);
    }
    let (finished, ended) = slots.split_at(20);
    let chunk = |(n, &slot): (usize, &Slot)| SourceEvent::Chunk {
        slot,
        start: n,
        end: n + 1,
    };
    let events = ended.iter().enumerate().map(chunk);
    let finished = finished.iter().map(|&slot| SourceEvent::Finished {
        slot,
        is_cut: false,
    });
    queue.batches.push(RawBatch {
        bytes: "\n".repeat(ended.len()).into(),
        events: events.chain(finished).collect(),
        credit: None,
        room: None,
        observed_ns: 0,
        read_at: Instant::now(),
        cuts: 0,
    });
    let (mut records, mut parts, mut is_cut) = (0, 0, true);
    while is_cut {
        let mut memory = Frames::default();
        let (framed, more) = queue
            .frame_next(scanner.searcher(true), &mut memory)
            .unwrap();
        let side: usize = framed.buffers[1].len();
        assert!(side <= 3 * line.len(), "{side}");
        assert!(queue.sources.lock().unwrap().held_bytes() <= (1 << 20) + line.len());
        records += framed.frames.records.len();
        parts += 1;
        is_cut = more;
    }
    assert_eq!(records, 40);
    assert!(parts >= 13, "{parts}");
}

/// An output that is behind gets again what it misses, and the other one only what is new.
#[test]
fn a_batch_ends_where_what_follows_is_for_others() {
    let facts = queue(usize::MAX).facts;
    let queue = InputQueue::new(
        tailrace_frame::Config::default(),
        facts,
        Arc::new(Tracker::new(2, u64::MAX)),
        Orders::new([false, false].into_iter()),
        1 << 20,
        usize::MAX,
        Overflow::new(usize::MAX, PathBuf::new()),
    );
    let scanner = scanner();
    let path: std::sync::Arc<std::path::Path> = PathBuf::from("/var/log/app.log").into();
    // Of the file of the first, the first output has two lines and the second none; of that of the second both have none.
    let sources = [6, 0].map(|read_to: u64| {
        let resume = [read_to, 0].map(|watermark| Resumed {
            watermark,
            counts: Counts::default(),
        });
        let slot = queue.tracker.open(Opening {
            id: None,
            generation: 0,
            path: path.clone(),
            origin: None,
            offset: 0,
            size: 1 << 20,
            replay_to: read_to,
            resume: resume.to_vec(),
        });
        let opened = SourceEvent::Opened {
            slot,
            replaces: None,
            path: path.clone(),
            offset: 0,
            mid_line: false,
            replay_to: read_to,
        };
        (slot, opened)
    });
    let [(known, a), (new, b)] = sources;
    let chunk = |slot, start, end| SourceEvent::Chunk { slot, start, end };
    let events = vec![
        a,
        b,
        chunk(new, 0, 3),
        chunk(known, 3, 12),
        chunk(new, 12, 15),
    ];
    queue.batches.push(RawBatch {
        bytes: "{}\n".repeat(5).into(),
        events,
        credit: None,
        room: None,
        observed_ns: 0,
        read_at: Instant::now(),
        cuts: 0,
    });
    let mut seen = Vec::new();
    while let Some((framed, is_cut)) =
        queue.frame_next(scanner.searcher(true), &mut Frames::default())
    {
        seen.push((framed.wanted, framed.frames.records.len(), is_cut));
    }
    let expected = [
        (vec![true, true], 1, true),
        (vec![false, true], 2, true),
        (vec![true, true], 2, false),
    ];
    assert_eq!(seen, expected);
}
