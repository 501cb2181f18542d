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
        1,
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
    let framed = lane
        .frame_next(scanner.sweeper(true), &mut Frames::default())
        .unwrap();
    assert_eq!(lane.queue.room.used(), 0);
    framed
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
