//! In which order the records of a record group are followed.
//!
//! Records that begin alike follow each other: where several programs write to one file, the next record is likely to
//! be of the same program as the last, and what it takes to follow it is what the machine has just done. Never decides
//! what a record is.

use crate::text::{RECORD_GROUP_MAX, Span};

// Records of a record group are told by a byte.
const _: () = assert!(RECORD_GROUP_MAX <= 1 << u8::BITS);

/// How many bytes of a record are its beginning: `{"level"` and `{"levelname"` are told apart.
const BEGINNING_BYTES: usize = 8;

/// Groups of beginnings; two that share one only lie closer together than they need to.
const GROUPS: usize = 64;

/// The places of these records, those that begin alike together, otherwise ascending; `None` if they all begin alike.
#[inline(never)]
pub(super) fn by_beginning<'o>(
    bytes: &[u8],
    spans: &[Span],
    order: &'o mut [u8; RECORD_GROUP_MAX],
) -> Option<&'o [u8]> {
    let beginning = |span: &Span| {
        let bytes = bytes.get(span.start()..)?;
        bytes.first_chunk::<BEGINNING_BYTES>()
    };
    let first = spans.first().and_then(beginning);
    if spans.iter().all(|span| beginning(span) == first) {
        return None;
    }
    let groups = |span| beginning(span).map_or(0, |bytes| group_of(*bytes));
    Some(sort(spans.iter().map(groups), &mut order[..spans.len()]))
}

/// Sorts by counting.
fn sort(groups: impl Iterator<Item = u8> + Clone, order: &mut [u8]) -> &[u8] {
    let mut places = [0_u16; GROUPS];
    for group in groups.clone() {
        places[group as usize] += 1;
    }
    let mut start = 0;
    for place in &mut places {
        (*place, start) = (start, start + *place);
    }
    for (group, at) in groups.zip(0_u32..) {
        let place = &mut places[group as usize];
        order[*place as usize] = at as u8;
        *place += 1;
    }
    order
}

/// The multiplicative hash of Knuth, The Art of Computer Programming, volume 3, section 6.4.
fn group_of(beginning: [u8; BEGINNING_BYTES]) -> u8 {
    let hash = u64::from_le_bytes(beginning).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> (u64::BITS - GROUPS.ilog2())) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(records: &[&str]) -> Vec<u8> {
        let text = records.concat();
        let mut end = 0;
        let spans = records.iter().map(|record| {
            end += record.len();
            Span::of(end - record.len(), end)
        });
        let spans: Vec<Span> = spans.collect();
        let mut order = [0; RECORD_GROUP_MAX];
        let order = by_beginning(text.as_bytes(), &spans, &mut order);
        order.unwrap_or_default().to_vec()
    }

    #[test]
    fn records_that_begin_alike_follow_each_other() {
        let (one, two) = ("{\"level\":\"INFO\"}", "{\"levelname\":\"INFO\"}");
        let order = places(&[one, two, two, one, two, one]);
        assert!(
            order == [0, 3, 5, 1, 2, 4] || order == [1, 2, 4, 0, 3, 5],
            "{order:?}"
        );
        assert_eq!(places(&[one, one, one]), [0; 0]);
        assert_eq!(places(&[]), [0; 0]);
    }

    #[test]
    fn every_record_has_one_place_also_where_the_buffer_ends() {
        let records: Vec<String> = (0..RECORD_GROUP_MAX).map(|i| "{}".repeat(i % 6)).collect();
        let mut order = places(&records.iter().map(String::as_str).collect::<Vec<_>>());
        order.sort_unstable();
        assert!(order.into_iter().eq(0..=u8::MAX));
    }
}
