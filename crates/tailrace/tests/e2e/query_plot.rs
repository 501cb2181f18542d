//! `tailrace query --plot`, `-o svg` and `-o png`: what is drawn, and what is refused with the way out.

use std::fs;
use std::process::{Output, Stdio};

use crate::support::{Bench, tailrace};
use crate::terminal::Terminal;

fn query(arguments: &[&str]) -> Output {
    let mut command = tailrace();
    command.arg("query").args(arguments).stdin(Stdio::null());
    command.env("COLUMNS", "40").output().unwrap()
}

#[test]
fn a_result_is_drawn_in_the_terminal_and_as_svg() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    let lines = (0..60).map(|minute| {
        let level = if minute % 3 == 0 {
            "err<or>\\u001b"
        } else {
            "info"
        };
        format!(
            "{{\"time\":\"2026-03-01T10:{minute:02}:00Z\",\"level\":\"{level}\",\"ms\":{minute}}}\n"
        )
    });
    fs::write(&file, lines.collect::<String>()).unwrap();
    let file = file.to_str().unwrap();
    let text = |arguments: &[&str]| {
        let output = query(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((said.as_str(), output.status.code()), ("", Some(0)));
        String::from_utf8(output.stdout).unwrap()
    };
    let groups = "SELECT level, count(*) AS n FROM logs GROUP BY level ORDER BY n";
    let drawn = text(&[groups, file, "--plot"]);
    assert_eq!(
        drawn,
        "              n\nerr<or>\\u{1b} ███████████▌ 20\ninfo          ███████████████████████ 40\n"
    );
    let by_time = "SELECT date_bin(INTERVAL '10 minutes', timestamp) AS t, level, count(*) AS n FROM logs GROUP BY t, level";
    let drawn = text(&[by_time, file, "--plot"]);
    assert!(
        drawn.lines().all(|line| line.chars().count() <= 40),
        "{drawn}"
    );
    assert!(
        drawn.contains("2026-03-01 10:00:00 to 10:50:00 UTC"),
        "{drawn}"
    );
    for sql in [groups, by_time] {
        let svg = text(&[sql, file, "-o", "svg"]);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let texts: Vec<_> = document.descendants().filter_map(|it| it.text()).collect();
        assert!(texts.contains(&"err<or>\\u{1b}"), "{texts:?}");
    }
}

#[test]
fn a_png_is_written_to_a_file_and_not_to_a_terminal() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    fs::write(&file, "{\"n\":1,\"a\":\"x\"}\n{\"n\":2,\"a\":\"y\"}\n").unwrap();
    let file = file.to_str().unwrap();
    let sql = "SELECT a, n FROM logs";
    let output = query(&[sql, file, "-o", "png"]);
    assert_eq!(output.status.code(), Some(0));
    let svg = query(&[sql, file, "-o", "svg"]).stdout;
    let svg = String::from_utf8(svg).unwrap();
    let decoder = png::Decoder::new(std::io::Cursor::new(&output.stdout));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    let size = format!(
        "width=\"{}\" height=\"{}\"",
        frame.width / 2,
        frame.height / 2
    );
    assert!(svg.contains(&size), "{size}: {svg}");
    assert_eq!(
        query(&[sql, file, "-o", "png", "--plot"]).stdout,
        output.stdout
    );

    let mut command = tailrace();
    command.args(["query", sql, file, "-o", "png"]);
    let (terminal, mut child) = Terminal::start(&mut command);
    let said = terminal.rest();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
    assert!(said.contains("> chart.png"), "{said}");
    assert!(!said.contains("PNG"), "{said}");
}

#[test]
fn what_cannot_be_drawn_says_what_can() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    fs::write(&file, "{\"n\":1,\"a\":\"x\",\"b\":\"y\"}\n").unwrap();
    let file = file.to_str().unwrap();
    let cases: [(&[&str], &str); 7] = [
        (
            &["SELECT a, b FROM logs", file, "--plot"],
            "no column of numbers",
        ),
        (&["SELECT n FROM logs", file, "-o", "svg"], "date_bin("),
        (
            &["SELECT a, a AS c, b, n FROM logs", file, "--plot"],
            "`b` is no number",
        ),
        (
            &["SELECT a, n FROM logs", file, "--plot", "-o", "csv"],
            "`--plot`",
        ),
        (&["SELECT a, n FROM logs", file, "--plot", "-f"], "`-f`"),
        (&["SELECT a, n FROM logs", file, "-o", "png", "-f"], "`-f`"),
        (&["SELECT n FROM logs", file, "-o", "png"], "date_bin("),
    ];
    for (arguments, expected) in cases {
        let output = query(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
