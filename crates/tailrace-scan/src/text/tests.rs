//! Repair and views: what is checked once stays valid.

#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;
use crate::records::Record;

fn records<'a>(buffers: &'a [Bytes], records: &'a [Record]) -> Records<'a> {
    Records {
        buffers,
        records,
        times: &[],
        streams: &[],
        observed_ns: 0,
        searched: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Ranges of any order, overlapping, cutting characters, beyond the buffer: each is as `from_utf8_lossy` says.
    #[test]
    fn every_range_is_checked_or_repaired(
        text in "[a\u{e9}\u{20ac}\u{1f600}]{0,20}",
        spoil in proptest::option::of((0..40_usize, any::<u8>())),
        ranges in proptest::collection::vec((0..2_u32, 0..60_u32, 0..60_u32), 0..12),
    ) {
        let mut bytes = text.into_bytes();
        if let Some((at, byte)) = spoil && let Some(spoilt) = bytes.get_mut(at) {
            *spoilt = byte;
        }
        let buffers = [Bytes::from(bytes), Bytes::from("{\u{e9}}")];
        let list: Vec<_> =
            ranges.iter().map(|&(buffer, start, end)| Record { buffer, start, end, flags: 0 }).collect();
        let checked = Buffers::check(&records(&buffers, &list));
        for (i, record) in list.iter().enumerate() {
            let range = record.start as usize..record.end as usize;
            let bytes = buffers[record.buffer as usize].get(range).unwrap_or(&[]);
            prop_assert_eq!(checked.record(i).text(), String::from_utf8_lossy(bytes));
        }
    }
}

/// Of lines of 200 bytes in one buffer, one of them no text: how long the record groups are, and whether they are known as text.
#[cfg(not(miri))]
fn record_groups(wanted: impl Iterator<Item = u32>, spoilt: Option<usize>) -> Vec<(usize, bool)> {
    const LINE_BYTES: u32 = 200;
    let wanted = wanted.map(|line| Record {
        buffer: 0,
        start: line * LINE_BYTES,
        end: (line + 1) * LINE_BYTES - 1,
        flags: 0,
    });
    let wanted = Vec::from_iter(wanted);
    let mut bytes = vec![b'a'; 16_000 * LINE_BYTES as usize];
    if let Some(line) = spoilt {
        bytes[line * LINE_BYTES as usize] = 0xff;
    }
    let buffers = [Bytes::from(bytes)];
    let checked = Buffers::check(&records(&buffers, &wanted));
    assert_eq!(checked.repaired(), 0);
    let (mut record_groups, mut from) = (Vec::new(), 0);
    while from < wanted.len() {
        let record_group = checked.record_group(from, 256);
        record_groups.push((
            record_group.spans().len(),
            record_group.valid_text().is_some(),
        ));
        from += record_group.spans().len();
    }
    record_groups
}

#[cfg(not(miri))]
#[test]
fn what_lies_between_records_is_text_with_them_unless_it_is_much() {
    let every = |nth: u32, count: u32| (0..count).map(move |line| line * nth);
    assert_eq!(
        record_groups(every(2, 512), None),
        [(256, true), (256, true)]
    );
    // Each by itself.
    assert_eq!(record_groups(every(10, 100), None), [(100, false)]);
    // A record group ends where its run does, if that is long.
    let far = (0..40).chain(500..540);
    assert_eq!(record_groups(far.clone(), None), [(40, true), (40, true)]);
    assert_eq!(record_groups((0..4).chain(500..504), None), [(8, false)]);
    // A line between that is no text costs what is known with it, and nothing beyond.
    assert_eq!(record_groups(every(2, 200), Some(101)), [(200, false)]);
    assert_eq!(record_groups(far, Some(250)), [(40, true), (40, true)]);
    let behind = every(2, 2_000);
    let known = record_groups(behind, Some(1))
        .into_iter()
        .filter(|&(_, is_text)| is_text);
    assert!(known.map(|(len, _)| len).sum::<usize>() >= 1_000);
}

/// Whether a search says of `searched` what it takes for `buffer` to be one run.
fn is_ascii_by_search(searched: &Bytes, buffer: &Bytes) -> bool {
    let scanner = crate::Scanner::new(crate::Config::default());
    let mut search = scanner.searcher(false).over(searched);
    while search.next_before(searched.len()).is_some() {}
    let searched = search.finish();
    let buffers = std::slice::from_ref(buffer);
    let list = [0, 500].map(|start| Record {
        buffer: 0,
        start,
        end: start + 9,
        flags: 0,
    });
    let checked = Buffers::check(&Records {
        searched: Some(&searched),
        ..records(buffers, &list)
    });
    assert_eq!(checked.repaired(), 0);
    checked.record_group(0, 2).valid_text().is_some()
}

#[test]
fn what_a_search_found_to_be_ascii_is_not_checked_and_only_that() {
    let ascii = Bytes::from("a line\n".repeat(100));
    assert!(is_ascii_by_search(&ascii, &ascii));
    // The same bytes in another place, and a part of them, were not searched.
    let other = Bytes::copy_from_slice(&ascii);
    assert!(!is_ascii_by_search(&other, &ascii));
    assert!(!is_ascii_by_search(&ascii.slice(..699), &ascii));
    for at in (0..700).step_by(if cfg!(miri) { 90 } else { 1 }) {
        let mut bytes = ascii.to_vec();
        bytes[at] |= 0x80;
        let is_of_a_record = at < 9 || (500..509).contains(&at);
        let bytes = Bytes::from(bytes);
        if !is_of_a_record {
            assert!(!is_ascii_by_search(&bytes, &bytes), "{at}");
        }
    }
}

#[test]
fn views_of_every_length() {
    let text = "0123456789abcdefghij\u{e9}";
    let buffers = [Bytes::from(text)];
    let list = [Record {
        buffer: 0,
        start: 1,
        end: text.len() as u32,
        flags: 0,
    }];
    let checked = Buffers::check(&records(&buffers, &list));
    let record = checked.record(0);
    let mut side = checked.side();
    let ranges: Vec<_> = (0..=20)
        .flat_map(|start| (start..=19).map(move |end| (start, end)))
        .chain([(0, 21), (19, 21)])
        .collect();
    let mut views = StringViews::new(2 * ranges.len());
    views.grow(2 * ranges.len());
    for (row, &(start, end)) in ranges
        .iter()
        .filter(|(start, end)| start <= end)
        .enumerate()
    {
        views.set(2 * row, record.view(start, end));
        let text = side.push(&record.text()[start..end]).unwrap();
        views.set(2 * row + 1, side.view(text));
    }
    let array = checked.finish(side).array(views, None);
    for (row, &(start, end)) in ranges
        .iter()
        .filter(|(start, end)| start <= end)
        .enumerate()
    {
        assert_eq!(array.value(2 * row), &text[1..][start..end]);
        assert_eq!(array.value(2 * row + 1), &text[1..][start..end]);
    }
}

#[test]
fn side_text_is_checked() {
    let mut side = Buffers::check(&records(&[], &[])).side();
    let kept = side.push("kept").unwrap();
    let invalid = side.append(|out| {
        out.push(0xff);
        Some(())
    });
    assert!(invalid.is_none());
    let refused = side.append(|out| {
        out.push(b'x');
        None::<()>
    });
    assert!(refused.is_none());
    let cleared = side.append(|out| {
        out.clear();
        Some(())
    });
    let (empty, ()) = cleared.unwrap();
    assert_eq!((side.text(kept), side.text(empty)), ("kept", ""));
}

#[test]
#[should_panic(expected = "char boundary")]
fn a_view_cannot_cut_a_character() {
    let buffers = [Bytes::from("\u{e9}")];
    let checked = Buffers::check(&records(
        &buffers,
        &[Record {
            buffer: 0,
            start: 0,
            end: 2,
            flags: 0,
        }],
    ));
    checked.record(0).view(1, 2);
}
