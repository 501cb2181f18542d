//! For any input and any cuts: the same records, and those that the naive implementation gives.

use proptest::prelude::*;
use tailrace_frame::{Config, Format};

use crate::{check, naive};

/// A payload as an application may write it; no newline.
fn payload() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z ]{0,12}",
        2 => "[äß€😀\"\\\\\t\r]{0,5}",
        1 => Just(String::new()),
        1 => Just("{\"a\":\"b\\n\"}".to_owned()),
        1 => "[a-c]{30,60}",
    ]
}

fn cri_line() -> impl Strategy<Value = String> {
    (
        0u32..60,
        "(Z|\\+02:00)",
        "(stdout|stderr)",
        "(P|P|P:x|F|F|F:y:P)",
        payload(),
    )
        .prop_map(|(second, zone, stream, tags, text)| {
            format!("2026-01-02T03:04:{second:02}.5{zone} {stream} {tags} {text}")
        })
}

fn docker_line() -> impl Strategy<Value = String> {
    let order = Just([0, 1, 2]).prop_shuffle();
    (payload(), "(stdout|stderr)", any::<bool>(), order).prop_map(|(text, stream, full, order)| {
        let text = if full { text + "\n" } else { text };
        let members = [
            format!("\"log\":{}", serde_json::to_string(&text).unwrap()),
            format!("\"stream\":\"{stream}\""),
            "\"time\":\"2026-01-02T03:04:05.6Z\"".to_owned(),
        ];
        format!(
            "{{{}}}",
            order.map(|index| members[index].clone()).join(",")
        )
    })
}

/// Lines of all kinds, mostly of one format; some cut short.
pub(crate) fn input() -> impl Strategy<Value = Vec<u8>> {
    let line = |cri, docker| {
        let kind = prop_oneof![
            cri => cri_line().boxed(),
            docker => docker_line().boxed(),
            2 => payload().boxed(),
            1 => "\\{\"[a-z]{0,4}\":[0-9]{1,3}\\}".boxed(),
            1 => Just(String::new()).boxed(),
        ];
        (
            kind,
            prop::option::weighted(0.05, any::<prop::sample::Index>()),
            "(\n|\n|\n|\r\n)",
            prop::option::weighted(0.1, 1..40_usize),
        )
            .prop_map(|(text, cut, ending, nuls)| {
                let end = cut.map_or(text.len(), |cut| cut.index(text.len() + 1));
                let nuls = vec![0; nuls.unwrap_or(0)];
                [&nuls, &text.as_bytes()[..end], ending.as_bytes()].concat()
            })
    };
    let lines = prop_oneof![
        prop::collection::vec(line(12, 1), 0..12),
        prop::collection::vec(line(1, 12), 0..12),
        prop::collection::vec(line(1, 1), 0..12),
    ];
    (lines, any::<bool>()).prop_map(|(lines, ends)| {
        let mut input = lines.concat();
        if !ends {
            input.pop();
        }
        input
    })
}

pub(crate) fn config() -> impl Strategy<Value = Config> {
    let formats = vec![
        Format::Json,
        Format::Raw,
        Format::Cri,
        Format::Docker,
        Format::Auto,
        Format::Container,
    ];
    let spans = prop_oneof![Just(u64::MAX), 0u64..400];
    (
        prop::sample::select(formats),
        prop_oneof![1usize..30, Just(1 << 20)],
        spans,
    )
        .prop_map(|(format, record_bytes_max, chain_span_max)| Config {
            format,
            record_bytes_max,
            chain_span_max,
            ..Config::default()
        })
}

pub(crate) fn cuts(places: &[prop::sample::Index], length: usize) -> Vec<usize> {
    let mut cuts: Vec<_> = places.iter().map(|place| place.index(length + 1)).collect();
    cuts.sort_unstable();
    cuts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_cuts_give_what_the_naive_framer_gives(
        config in config(),
        input in input(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let expect = naive::frame(&config, &input);
        let (found, _) = check::frame(&config, false, &input, &cuts(&places, input.len()));
        prop_assert_eq!(found, expect);
    }

    #[test]
    fn any_bytes_are_divided_alike_by_any_cuts(
        config in config(),
        input in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), any::<u8>()], 0..200),
        mid_line in any::<bool>(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let (whole, stats) = check::frame(&config, mid_line, &input, &[]);
        let (found, cut_stats) = check::frame(&config, mid_line, &input, &cuts(&places, input.len()));
        prop_assert_eq!(found, whole);
        prop_assert_eq!(stats, cut_stats);
    }

    #[test]
    fn a_restart_at_the_watermark_repeats_but_loses_nothing(
        format in prop::sample::select(&[Format::Raw, Format::Cri, Format::Docker][..]),
        input in input(),
        place in any::<prop::sample::Index>(),
    ) {
        let config = Config { format, ..Config::default() };
        let (whole, _) = check::frame(&config, false, &input, &[]);
        let stop = place.index(input.len() + 1);
        let mut first = tailrace_frame::Framer::new(&config, check::ORIGIN, false);
        let mut frames = tailrace_frame::Frames::default();
        first.push(&input[..stop], 0, 0, &mut frames);
        let given = frames.records.len();
        let watermark = first.unacked_from().unwrap_or(first.offset());
        let resumed = (watermark - check::ORIGIN) as usize;
        let mut second = tailrace_frame::Framer::new(&config, watermark, false);
        frames.clear();
        second.push(&input[resumed..], 0, 0, &mut frames);
        second.finish(&mut frames);
        // What was not given out before the stop is given out whole after it.
        for record in &whole.records[given..] {
            let index = (0..frames.records.len()).find(|&index| frames.pieces_of(index) == record.pieces);
            prop_assert!(index.is_some(), "{:?}", record);
            let again = &frames.records[index.unwrap()];
            prop_assert_eq!(frames.content(again, &input[resumed..]), &record.content[..]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Lines around the limit that is beyond the record limit, where the envelope's room ends.
    #[test]
    fn lines_longer_than_any_envelope(
        config in config(),
        before in input(),
        docker in any::<bool>(),
        tag in "(P|F)",
        length in (128usize << 10) - 80..(128 << 10) + 80,
        ending in "(\n|\r\n|)",
        after in input(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let text = "y".repeat(length);
        let line = match (docker, &*tag) {
            (true, "P") => format!("{{\"stream\":\"stdout\",\"log\":\"{text}\"}}"),
            (true, _) => format!("{{\"stream\":\"stdout\",\"log\":\"{text}\\n\"}}"),
            (false, tag) => format!("2026-01-02T03:04:05Z stdout {tag} {text}"),
        };
        let input = [&before[..], line.as_bytes(), ending.as_bytes(), &after].concat();
        let expect = naive::frame(&config, &input);
        let (found, _) = check::frame(&config, false, &input, &cuts(&places, input.len()));
        prop_assert!(found == expect);
    }
}
