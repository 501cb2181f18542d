//! Every instruction set, every alignment, every way to part records into batches: all equal the reference.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tailrace_model::json::{self, Kind};

use super::generate::{self, KEYS};
use super::{Batch, ISAS, check_scan, key, path_config, plain, rich_config, star_config, texts_of};
use crate::naive::{Naive, Plain};
use crate::{Config, Needle, Needles, Records, Scanner, Star, Stats, Type};

fn configs() -> [Config; 6] {
    let everything = Config {
        star: star_config(512).star,
        ..rich_config(&KEYS)
    };
    [
        everything,
        rich_config(&["a", "q\"uote"]),
        star_config(512),
        star_config(2),
        path_config(&KEYS),
        Config::default(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 192 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scan_equals_the_reference(batch in generate::batch()) {
        for config in configs() {
            check_scan(&config, &batch);
        }
    }

    /// Lines of few templates, as programs write them, with a bent one here and there: what is read by template is what a
    /// walk reads.
    #[test]
    fn templates_equal_the_reference(lines in proptest::collection::vec(generate::of_template(), 1..90)) {
        let batch = Batch::of_lines(&lines, 0);
        for config in configs() {
            check_scan(&config, &batch);
        }
        let few = Config { columns: vec![key("b", Type::Float64), key("a", Type::Text)], ..Config::default() };
        check_scan(&few, &batch);
    }

    /// Many shapes in turns, with keys that share prefixes, repeat, come once and never again, and values nested in each other:
    /// what was learnt of one line decides nothing of another. Twice, since what was learnt stays.
    #[test]
    fn shapes_in_turns_equal_the_reference(lines in proptest::collection::vec(generate::of_many_shapes(), 1..80)) {
        let batch = Batch::of_lines(&[&lines[..], &lines[..]].concat(), 0);
        for config in [star_config(512), star_config(2), rich_config(&["a", "level"])] {
            check_scan(&config, &batch);
        }
    }

    /// Lines of one template one after the other: what is read by distance is what a walk reads.
    #[test]
    fn neighbours_equal_the_reference(lines in generate::of_one_template()) {
        let batch = Batch::of_lines(&lines, 0);
        for config in configs() {
            check_scan(&config, &batch);
        }
    }

    /// Some of many lines, with bytes that are no text in others: what is checked beside a record decides nothing.
    #[test]
    fn lines_between_records_do_not_matter(
        lines in generate::of_one_template(),
        times in 1..12_usize,
        wanted in any::<u64>(),
        spoilt in prop_oneof![Just(0), any::<u64>(), (0..64_u64).prop_map(|at| 1 << at)],
    ) {
        let is_in = |set: u64, at: usize| set >> (at % 64) & 1 == 1;
        let mut lines: Vec<_> = lines.iter().cycle().take(times * lines.len()).cloned().collect();
        for (at, line) in lines.iter_mut().enumerate().filter(|&(at, _)| is_in(spoilt, at)) {
            line.push([0xff, 0xc3][at % 2]);
        }
        let mut batch = Batch::of_lines(&lines, 0);
        batch.records = (0..).zip(batch.records).filter(|&(at, _)| is_in(wanted, at)).map(|(_, record)| record).collect();
        for config in configs() {
            check_scan(&config, &batch);
        }
    }

    /// Where the value of a key was long when its template was learnt, it is looked at further at once.
    #[test]
    fn strings_of_every_length_after_a_long_one(first in 15..70_usize, lens in proptest::collection::vec(0..140_usize, 1..8), odd in proptest::sample::select(&["", "\\n", "\\x", "\u{1}", "\u{e9}", "\\\""][..]), at in 0..140_usize) {
        let line = |len: usize, odd: &str| {
            let (before, after) = (at.min(len), len - at.min(len));
            format!("{{\"a\":\"{}{odd}{}\",\"b\":{len}}}", "x".repeat(before), "y".repeat(after))
        };
        let mut lines = vec![line(first, ""); 3];
        lines.extend(lens.into_iter().map(|len| line(len, odd)));
        // A control character where the quote would be.
        lines.push(format!("{{\"a\":\"{}\u{1},\"b\":1}}", "x".repeat(first)));
        lines.extend((0..2).map(|_| line(first, "")));
        check_scan(&rich_config(&["a", "b"]), &Batch::of_lines(&lines, 0));
    }

    /// What two phases give for some records is what one phase gives for them.
    #[test]
    fn two_phases_equal_one(batch in generate::batch(), kept in any::<u64>(), has_prefilter in any::<bool>(), searched in any::<bool>()) {
        let needle = Needle { text: "a".into(), quoted: true };
        for config in configs().into_iter().filter(|config| !config.columns.is_empty()) {
            let config = Config {
                first: (0..config.columns.len()).step_by(2).collect(),
                prefilter: Vec::from_iter(has_prefilter.then(|| Needles { any: vec![needle.clone()] })),
                ..config
            };
            let mut scanner = Scanner::new(config.clone());
            let records = batch.records();
            let buffer = batch.buffers.first().cloned().unwrap_or_default();
            let searched = scanner.searcher(searched).over(&buffer).finish();
            let records = Records { searched: Some(&searched), ..records };
            let first = scanner.first(&records);
            let candidates = first.rows.clone().unwrap_or((0..batch.records.len() as u32).collect());
            let expect = plain(&Scanner::new(config.clone()).scan_some(&records, &candidates));
            let columns = first.batch.columns().iter().zip(&config.first);
            for (column, &at) in columns {
                prop_assert_eq!(texts_of(column), expect.columns[at].iter().map(|cell| cell.0.clone()).collect::<Vec<_>>());
            }
            let rows: Vec<u32> = candidates.into_iter().filter(|row| kept >> (row % 64) & 1 == 1).collect();
            let second = plain(&scanner.second(&records, &first, &rows));
            let expect = plain(&Scanner::new(config.clone()).scan_some(&records, &rows));
            let counted = Stats { repaired: 0, ..expect.stats };
            prop_assert_eq!(second, Plain { stats: counted, ..expect });
        }
    }

    #[test]
    fn parts_of_a_batch_equal_the_whole(batch in generate::batch(), size in 1..5_usize) {
        for config in configs() {
            let whole = Scanner::new(config.clone()).scan(&batch.records());
            let mut scanner = Scanner::new(config.clone());
            let mut naive = Naive::new(&config);
            let mut joined = Plain { columns: vec![Vec::new(); config.columns.len()], ..Plain::default() };
            for at in (0..batch.records.len()).step_by(size) {
                let end = (at + size).min(batch.records.len());
                let part = Records {
                    records: &batch.records[at..end],
                    times: &batch.times[at..end],
                    streams: &batch.streams[at..end],
                    ..batch.records()
                };
                let scanned = plain(&scanner.scan(&part));
                prop_assert_eq!(&scanned, &naive.scan(&part));
                for (column, cells) in joined.columns.iter_mut().zip(scanned.columns) {
                    column.extend(cells);
                }
                joined.raw.extend(scanned.raw);
                joined.malformed.extend(scanned.malformed);
            }
            let whole = plain(&whole);
            prop_assert_eq!(joined.columns, whole.columns);
            prop_assert_eq!(joined.raw, whole.raw);
            prop_assert_eq!(joined.malformed, whole.malformed);
        }
    }

    /// However few slots the columns may have, no member is lost or changed.
    #[test]
    fn members_beyond_the_budget_overflow(batch in generate::batch(), cells_max in 0..40_usize, kept in any::<u64>()) {
        let config = |cells_max| {
            let star = star_config(512).star.map(|star| Star { cells_max, ..star });
            Config { star, first: vec![0], ..star_config(512) }
        };
        let records = batch.records();
        let expect = plain(&Scanner::new(config(usize::MAX)).scan(&records));
        let mut scanner = Scanner::new(config(cells_max));
        let scanned = plain(&scanner.scan(&records));
        for row in 0..batch.records.len() {
            prop_assert_eq!(members(&scanned, row), members(&expect, row), "row {}", row);
            for key in ["level", "nested"] {
                prop_assert_eq!(of_column(&scanned, key, row), of_column(&expect, key, row), "row {}: {}", row, key);
            }
        }
        prop_assert_eq!(&scanned.raw, &expect.raw);
        prop_assert_eq!(scanned.stats, expect.stats);
        // The second phase has the same budget.
        let first = scanner.first(&records);
        let rows: Vec<u32> = (0..batch.records.len() as u32).filter(|row| kept >> (row % 64) & 1 == 1).collect();
        let second = plain(&scanner.second(&records, &first, &rows));
        for (row, &record) in rows.iter().enumerate() {
            prop_assert_eq!(members(&second, row), members(&expect, record as usize));
        }
    }

    #[test]
    fn alignment_does_not_matter(lines in proptest::collection::vec(generate::line(), 1..6)) {
        let config = Config { star: star_config(512).star, ..rich_config(&["a", "message"]) };
        let expect = Naive::new(&config).scan(&Batch::of_lines(&lines, 0).records());
        for pad in 0..64 {
            let batch = Batch::of_lines(&lines, pad);
            for isa in ISAS {
                let scanned = Scanner::new(Config { isa, ..config.clone() }).scan(&batch.records());
                prop_assert_eq!(&plain(&scanned), &expect, "{:?}, {} bytes before", isa, pad);
            }
        }
    }
}

/// All members of a row that `SELECT *` gives, with their kinds and texts, in columns or not.
fn members(scanned: &Plain, row: usize) -> BTreeMap<String, (u8, Vec<u8>)> {
    let columns = scanned.star.iter().filter_map(|(key, _)| {
        let (text, kind) = of_column(scanned, key, row)?;
        Some((key.clone(), (kind, text.unwrap_or_default().into_bytes())))
    });
    let overflow = scanned.overflow[row].iter().flatten().map(|(key, text)| {
        let value = json::parse_value(text).expect("what overflows is JSON");
        let mut plain = value.text.as_bytes().to_vec();
        if value.escaped {
            plain.clear();
            json::unescape(value.text, &mut plain);
        }
        if value.kind == Kind::Null {
            plain.clear();
        }
        (key.clone(), (value.kind as u8, plain))
    });
    columns.chain(overflow).collect()
}

/// The text and the kind that a column of `SELECT *` has in a row.
fn of_column(scanned: &Plain, key: &str, row: usize) -> Option<(Option<String>, u8)> {
    let (_, cells) = scanned.star.iter().find(|(name, _)| name == key)?;
    let (text, kind) = cells[row].clone();
    Some((text, kind?))
}
