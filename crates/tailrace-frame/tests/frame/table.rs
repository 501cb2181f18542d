//! What goes in and what comes out. `check_frame(format, input, records)`; a record is written as its content, with
//! stream and flags before a colon where there are any. Every input is also cut at every place.

use tailrace_frame::{Config, Flags, Format, Framer, Frames, Skip, SkipReason};

use crate::check::{ORIGIN, check_config, check_frame, frame};

#[test]
fn lines() {
    check_frame(Format::Raw, "one\ntwo\n", &["one", "two"]);
    check_frame(Format::Raw, "windows\r\nunix\n", &["windows", "unix"]);
    check_frame(
        Format::Raw,
        "one return is the line's\r\r\n",
        &["one return is the line's\r"],
    );
    check_frame(Format::Raw, "a\rb\n", &["a\rb"]);
    check_frame(Format::Raw, "  spaces stay \t\n", &["  spaces stay \t"]);
    check_frame(
        Format::Json,
        "{\"a\":1}\r\n{\"b\":2}\n",
        &["{\"a\":1}", "{\"b\":2}"],
    );
    check_frame(Format::Json, "not json\n", &["not json"]);
}

#[test]
fn the_last_line_needs_no_newline_once_the_source_has_ended() {
    check_frame(Format::Raw, "one\ntwo", &["one", "two"]);
    check_frame(Format::Raw, "one\ntwo\r", &["one", "two"]);
    check_frame(
        Format::Cri,
        "2026-01-02T03:04:05Z stdout F one",
        &["stdout: one"],
    );
    check_frame(
        Format::Cri,
        "2026-01-02T03:04:05Z stdo",
        &["broken: 2026-01-02T03:04:05Z stdo"],
    );
    check_frame(
        Format::Docker,
        r#"{"log":"one\n","stream":"stdout"}"#,
        &["stdout: one"],
    );
}

#[test]
fn blank_lines_are_no_records() {
    check_frame(Format::Raw, "", &[]);
    check_frame(Format::Raw, "\n\none\n \t\n\r\ntwo\n\n", &["one", "two"]);
    check_frame(
        Format::Cri,
        "2026-01-02T03:04:05Z stdout F \n2026-01-02T03:04:05Z stdout F\n",
        &[],
    );
    check_frame(
        Format::Docker,
        "{\"log\":\"\\n\"}\n{\"log\":\"\\t\\r\\n\"}\n\n",
        &[],
    );
    let (outcome, stats) = frame(&Config::default(), false, b"\n\na\n\n", &[]);
    let blank = |start, end| Skip {
        source: 0,
        start: ORIGIN + start,
        end: ORIGIN + end,
        reason: SkipReason::Blank,
    };
    assert_eq!(outcome.skips, [blank(0, 2), blank(4, 5)]);
    assert_eq!((stats.blank_lines, stats.oversize_bytes), (3, 0));
}

#[test]
fn containerd_and_crio() {
    check_frame(
        Format::Cri,
        "2026-01-02T03:04:05.678901234Z stdout F {\"level\":\"info\"}\n\
         2026-01-02T05:04:05.678901234+02:00 stderr F oops, two  spaces\n\
         2026-01-02T03:04:05Z stdout F:tag windows\r\n",
        &[
            "stdout: {\"level\":\"info\"}",
            "stderr: oops, two  spaces",
            "stdout: windows",
        ],
    );
    let config = Config {
        format: Format::Cri,
        ..Config::default()
    };
    let (outcome, _) = frame(
        &config,
        false,
        b"2026-01-02T05:04:05.678901234+02:00 stderr F x\n",
        &[],
    );
    assert_eq!(outcome.records[0].time_ns, 1_767_323_045_678_901_234);
}

#[test]
fn partial_lines_are_joined_per_stream() {
    check_frame(
        Format::Cri,
        "2026-01-02T03:04:05Z stdout P one, \n\
         2026-01-02T03:04:06Z stderr F meanwhile\n\
         2026-01-02T03:04:07Z stdout P two, \n\
         2026-01-02T03:04:08Z stderr P x\n\
         2026-01-02T03:04:09Z stdout F three\n\
         2026-01-02T03:04:10Z stderr F y\n",
        &["stderr: meanwhile", "stdout: one, two, three", "stderr: xy"],
    );
    check_frame(
        Format::Cri,
        "2026-01-02T03:04:05Z stdout P a return within\r\n\
         2026-01-02T03:04:05Z stdout F  stays, at the end\r\n",
        &["stdout: a return within\r stays, at the end"],
    );
    check_frame(
        Format::Cri,
        "2026-01-02T03:04:05Z stderr P never finished\n2026-01-02T03:04:05Z stdout P nor this\n",
        &["stderr: never finished", "stdout: nor this"],
    );
}

#[test]
fn a_joined_record_has_the_first_time_and_all_pieces() {
    let first = "2026-01-02T03:04:05Z stdout P a\n";
    let other = "2026-01-02T03:04:06Z stderr F -\n";
    let input = [first, first, other, first.replace('P', "F").as_str()].concat();
    let config = Config {
        format: Format::Cri,
        ..Config::default()
    };
    let (outcome, stats) = frame(&config, false, input.as_bytes(), &[]);
    let joined = &outcome.records[1];
    assert_eq!(joined.content, b"aaa");
    assert_eq!(joined.time_ns, 1_767_323_045_000_000_000);
    let spans: Vec<_> = joined
        .pieces
        .iter()
        .map(|piece| (piece.start - ORIGIN, piece.end - ORIGIN))
        .collect();
    assert_eq!(spans, [(0, 64), (96, 128)]);
    assert_eq!((stats.records, stats.joined), (2, 1));
}

#[test]
fn a_partial_line_holds_the_watermark_until_its_end_arrives() {
    let partial = b"2026-01-02T03:04:05Z stdout P begun, \n";
    let complete = b"2026-01-02T03:04:06Z stderr F complete\n";
    let end = b"2026-01-02T03:04:07Z stdout F ended\n";
    let mut framer = Framer::new(
        &Config {
            format: Format::Cri,
            ..Config::default()
        },
        500,
        false,
    );
    let mut frames = Frames::default();
    framer.push(complete, 0, 0, &mut frames);
    assert_eq!(framer.unacked_from(), None);
    let start = framer.offset();
    framer.push(partial, 0, 0, &mut frames);
    for _ in 0..40 {
        frames.clear();
        framer.push(complete, 0, 0, &mut frames);
        assert_eq!(frames.content(&frames.records[0], complete), b"complete");
        assert_eq!(framer.unacked_from(), Some(start));
    }
    frames.clear();
    framer.push(&end[..10], 0, 0, &mut frames);
    assert_eq!(framer.unacked_from(), Some(start));
    framer.push(&end[10..], 0, 0, &mut frames);
    assert_eq!(frames.content(&frames.records[0], &[]), b"begun, ended");
    assert_eq!(framer.unacked_from(), None);
}

#[test]
fn docker_lines() {
    check_frame(
        Format::Docker,
        "{\"log\":\"plain\\n\",\"stream\":\"stdout\",\"time\":\"2026-01-02T03:04:05.6Z\"}\n\
         {\"time\":\"2026-01-02T03:04:05Z\",\"attrs\":{\"a\":\"b\"},\"stream\":\"stderr\",\"log\":\"\\u003cb\\u003e\\r\\n\"}\n\
         {\"log\":\"{\\\"a\\\":\\\"ü\\\\n\\\"}\\n\",\"stream\":\"stdout\",\"time\":\"?\"}\r\n",
        &["stdout: plain", "stderr: <b>", "stdout: {\"a\":\"ü\\n\"}"],
    );
    let config = Config {
        format: Format::Docker,
        ..Config::default()
    };
    let line = br#"{"log":"x\n","stream":"stdout","time":"2026-01-02T03:04:05.678901234Z"}"#;
    let (outcome, _) = frame(&config, false, line, &[]);
    assert_eq!(outcome.records[0].time_ns, 1_767_323_045_678_901_234);
}

#[test]
fn docker_pieces_are_joined_until_log_ends_in_a_newline() {
    check_frame(
        Format::Docker,
        "{\"log\":\"one, \",\"stream\":\"stdout\"}\n\
         {\"log\":\"meanwhile\\n\",\"stream\":\"stderr\"}\n\
         {\"log\":\"\\\"two\\\", \",\"stream\":\"stdout\"}\n\
         {\"log\":\"three\\n\",\"stream\":\"stdout\"}\n\
         {\"log\":\"no end\",\"stream\":\"stderr\"}\n",
        &[
            "stderr: meanwhile",
            "stdout: one, \"two\", three",
            "stderr: no end",
        ],
    );
}

#[test]
fn lines_without_the_envelope_are_kept_as_they_are() {
    check_frame(
        Format::Cri,
        "2026-01-02T03:04:05Z stdout P one, \n\
         what is this\r\n\
         2026-01-02T03:04:05Z stdout X y\n\
         2026-01-02T03:04:05Z stdout F two\n",
        &[
            "broken: what is this",
            "broken: 2026-01-02T03:04:05Z stdout X y",
            "stdout: one, two",
        ],
    );
    check_frame(
        Format::Docker,
        "{\"log\":\"cut off\n{\"log\":1}\n{\"log\":\"\\x\\n\"}\n",
        &[
            "broken: {\"log\":\"cut off",
            "broken: {\"log\":1}",
            "broken: {\"log\":\"\\x\\n\"}",
        ],
    );
}

#[test]
fn auto_is_decided_by_the_first_line_that_is_not_blank() {
    check_frame(
        Format::Auto,
        "\n2026-01-02T03:04:05Z stdout F cri\nx\n",
        &["stdout: cri", "broken: x"],
    );
    check_frame(
        Format::Auto,
        "{\"log\":\"docker\\n\",\"stream\":\"stdout\",\"time\":\"2026-01-02T03:04:05Z\"}\nx\n",
        &["stdout: docker", "broken: x"],
    );
    check_frame(
        Format::Auto,
        "{\"log\":\"an application's own key\"}\nx\n",
        &["{\"log\":\"an application's own key\"}", "x"],
    );
    check_frame(
        Format::Auto,
        "starting\n{\"a\":1}\n2026-01-02T03:04:05Z stdout F x\n",
        &["starting", "{\"a\":1}", "2026-01-02T03:04:05Z stdout F x"],
    );
}

#[test]
fn flags_say_what_may_be_text() {
    let line = b"{\"a\":1}\n";
    for (format, flags) in [
        (Format::Json, Flags::NONE),
        (Format::Raw, Flags::TEXT),
        (Format::Auto, Flags::TEXT_ALLOWED),
        (Format::Cri, Flags::TEXT_ALLOWED | Flags::BROKEN),
        (Format::Docker, Flags::TEXT_ALLOWED | Flags::BROKEN),
    ] {
        let (outcome, _) = frame(
            &Config {
                format,
                ..Config::default()
            },
            false,
            line,
            &[],
        );
        assert_eq!(outcome.records[0].flags, flags, "{format:?}");
    }
}

#[test]
fn long_lines_are_truncated_and_the_source_goes_on() {
    let config = Config {
        format: Format::Raw,
        record_bytes_max: 5,
        ..Config::default()
    };
    check_config(
        &config,
        "12345\n123456\n1\n",
        &["12345", "truncated: 12345", "1"],
    );
    check_config(
        &config,
        "12345\r\n123456\r\n12345\rx\n",
        &["12345", "truncated: 12345", "truncated: 12345"],
    );
    check_config(&config, "1234567890", &["truncated: 12345"]);
    check_config(&config, "12345\r", &["12345"]);
    check_config(
        &config,
        "123äöü\n1234äöü\n",
        &["truncated: 123ä", "truncated: 1234"],
    );
    check_config(&config, "       \n", &["truncated:      "]);
    let (outcome, _) = frame(&config, false, b"1\n1234567\n", &[]);
    assert_eq!(
        (
            outcome.records[1].pieces[0].start,
            outcome.records[1].pieces[0].end
        ),
        (ORIGIN + 2, ORIGIN + 7)
    );
    assert_eq!(
        outcome.skips,
        [Skip {
            source: 0,
            start: ORIGIN + 7,
            end: ORIGIN + 10,
            reason: SkipReason::Oversize
        }]
    );
}

#[test]
fn the_limit_counts_the_payload_not_the_envelope() {
    let cri = Config {
        format: Format::Cri,
        record_bytes_max: 5,
        ..Config::default()
    };
    check_config(
        &cri,
        "2026-01-02T03:04:05Z stdout F 12345\r\n2026-01-02T03:04:05Z stdout F 123456\n",
        &["stdout: 12345", "stdout truncated: 12345"],
    );
    let docker = Config {
        format: Format::Docker,
        ..cri
    };
    check_config(
        &docker,
        "{\"log\":\"12345\\r\\n\"}\n{\"log\":\"\\t2345\\n\"}\n{\"log\":\"123456\\n\"}\n{\"log\":\"\\t23456\\n\"}\n",
        &["12345", "\t2345", "truncated: 12345", "truncated: \t2345"],
    );
}

#[test]
fn long_chains_are_truncated_and_their_rest_is_skipped() {
    let config = Config {
        format: Format::Cri,
        record_bytes_max: 5,
        ..Config::default()
    };
    check_config(
        &config,
        "2026-01-02T03:04:05Z stdout P 123\n\
         2026-01-02T03:04:05Z stdout P 456\n\
         2026-01-02T03:04:05Z stderr F other\n\
         2026-01-02T03:04:05Z stdout P 789\n\
         2026-01-02T03:04:05Z stdout F 0\n\
         2026-01-02T03:04:05Z stdout F next\n",
        &["stdout truncated: 12345", "stderr: other", "stdout: next"],
    );
    check_config(
        &config,
        "2026-01-02T03:04:05Z stdout P 123\n2026-01-02T03:04:05Z stdout F 45\r\n2026-01-02T03:04:05Z stdout F next\n",
        &["stdout: 12345", "stdout: next"],
    );
    check_config(
        &Config {
            format: Format::Docker,
            ..config
        },
        "{\"log\":\"123\"}\n{\"log\":\"456\"}\n{\"log\":\"789\\n\"}\n{\"log\":\"next\\n\"}\n",
        &["truncated: 12345", "next"],
    );
}

#[test]
fn a_chain_that_spans_too_much_is_given_up() {
    let config = |chain_span_max| Config {
        format: Format::Cri,
        chain_span_max,
        ..Config::default()
    };
    let begun = "2026-01-02T03:04:05Z stdout P begun\n";
    let one = "2026-01-02T03:04:05Z stderr F one\n";
    let input = [
        begun,
        one,
        "2026-01-02T03:04:05Z stderr F two\n",
        "2026-01-02T03:04:05Z stdout P later,\n",
        "2026-01-02T03:04:05Z stdout F ended\n",
    ]
    .concat();
    let span = (begun.len() + one.len()) as u64;
    check_config(
        &config(span),
        &input,
        &[
            "stderr: one",
            "stderr: two",
            "stdout truncated: begun",
            "stdout: later,ended",
        ],
    );
    check_config(
        &config(span - 1),
        &input,
        &[
            "stderr: one",
            "stdout truncated: begun",
            "stderr: two",
            "stdout: later,ended",
        ],
    );
}

#[test]
fn a_source_that_starts_within_a_line() {
    let config = Config {
        format: Format::Raw,
        ..Config::default()
    };
    let input = b"rest of a line\nnext\n";
    for cut in 0..input.len() {
        let (outcome, _) = frame(&config, true, input, &[cut]);
        assert_eq!(outcome.records.len(), 1);
        assert_eq!(outcome.records[0].content, b"next");
        assert_eq!(
            outcome.skips,
            [Skip {
                source: 0,
                start: ORIGIN,
                end: ORIGIN + 15,
                reason: SkipReason::Oversize
            }]
        );
    }
    let (outcome, _) = frame(&config, true, b"no newline at all", &[3]);
    assert!(outcome.records.is_empty());
}
