//! One sweep goes over a buffer in which chunks of several sources stand, and some of them are not framed.

use std::path::PathBuf;
use std::time::Instant;

use tailrace_model::json::Step;
use tailrace_scan::{Column, Config, Needle, Needles, Records, Scanner, Source, Type};

use super::*;
use crate::transform::scan_records;
use crate::watermark::Opening;

/// Finds the records in which the text `"x"`, quotes and all, may stand.
fn scanner() -> Scanner {
    let needle = Needle {
        text: "x".into(),
        quoted: true,
    };
    let column = Column {
        name: "a".into(),
        source: Source::Key(vec![Step::Key("a".into())]),
        ty: Type::Text,
    };
    Scanner::new(Config {
        columns: vec![column],
        first: vec![0],
        prefilter: vec![Needles { any: vec![needle] }],
        ..Config::default()
    })
}

fn lane() -> Lane {
    let facts = FactsConfig {
        resource: Vec::new(),
        encodings: Vec::new(),
        files: true,
        pods: None,
    };
    Lane::new(
        tailrace_frame::Config::default(),
        facts,
        Arc::new(Tracker::new(1)),
        Orders::new([false].into_iter()),
        1 << 20,
    )
}

/// A source that the tracker knows, and the event that makes it known to the lane.
fn open(lane: &Lane) -> (Slot, SourceEvent) {
    let path = PathBuf::from("/var/log/app.log");
    let slot = lane.tracker.open(Opening {
        id: None,
        generation: 0,
        path: path.clone(),
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
    lane: &Lane,
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
    lane.queue.push(RawBatch {
        bytes: bytes.into(),
        events,
        credit: None,
        room: lane.queue.room.reserve(1 << 20, || ()),
        observed_ns: 0,
        read_at: Instant::now(),
    });
    assert_eq!(lane.queue.room.used(), 1 << 20);
    // In memory that was used before.
    let mut used = Framed::default();
    Framer::new(&lane.frame, 0, false).push(b"{}\n\n{}\n", 0, 0, &mut used.frames);
    let mut memory = used.take_memory();
    let framed = lane.frame_next(scanner.sweeper(true), &mut memory).unwrap();
    assert_eq!(lane.queue.room.used(), 0);
    framed
}

#[test]
fn a_record_that_began_before_a_rotation_stands_where_it_ends() {
    let (lane, scanner) = (lane(), scanner());
    let ((earlier, a), (slot, mut b)) = (open(&lane), open(&lane));
    let [part, rest, other] = ["P one, ", "F two", "F three"]
        .map(|text| format!("2026-01-02T03:04:05.000000001Z stdout {text}\n"));
    let (part_len, rest_len) = (part.len() as u64, rest.len() as u64);
    let framed = frame(&lane, &scanner, vec![a], &[(earlier, &part)]);
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
    let framed = frame(&lane, &scanner, vec![b, goes_on], &[(slot, &chunk)]);
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
        .places
        .ends()
        .map(|(slot, ends)| (slot, ends.collect()));
    assert_eq!(Vec::from_iter(ends), [(slot, vec![rest_len, end])]);
    assert_eq!(framed.replayed, 1);
}

#[test]
fn chunks_that_are_not_framed_do_not_shift_those_behind_them() {
    let (lane, mut scanner) = (lane(), scanner());
    let ((first, a), (out, b), (last, c)) = (open(&lane), open(&lane), open(&lane));
    frame(&lane, &scanner, vec![a, b, c], &[]);
    let mut sources = lane.sources.lock().unwrap();
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
        let framed = frame(&lane, &scanner, Vec::new(), &chunks);
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
        };
        assert!(framed.hits.is_some());
        let found = scanner.first(&records, framed.hits.as_ref());
        assert_eq!(found.rows, Some(vec![30, 61]));
    }
}
