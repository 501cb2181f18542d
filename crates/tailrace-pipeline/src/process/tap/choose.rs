//! Which records of a batch are sampled: as many of each source, and within a source at equal distances. Other ones in each
//! turn. Pure.

use std::ops::Range;

/// At most `max` records of a batch, ascending, each with the number of its run. `runs` are the records of one source after
/// the other.
pub(super) fn choose(runs: &[Range<u32>], max: usize, turn: u64) -> Vec<(usize, u32)> {
    let filled: Vec<usize> = (0..runs.len()).filter(|&at| !runs[at].is_empty()).collect();
    if max == 0 || filled.is_empty() {
        return Vec::new();
    }
    // With fewer records than sources, some sources have one each.
    let (count, each) = match filled.len() <= max {
        true => (filled.len(), max / filled.len()),
        false => (max, 1),
    };
    let first = (mixed(turn, 0) % filled.len() as u64) as usize;
    let mut chosen_runs: Vec<usize> = (0..count)
        .map(|n| filled[(first + n * filled.len() / count) % filled.len()])
        .collect();
    chosen_runs.sort_unstable();
    let mut chosen = Vec::with_capacity(count * each);
    for at in chosen_runs {
        let run = &runs[at];
        let length = (run.end - run.start) as usize;
        let taken = each.min(length);
        let step = length / taken;
        let offset = (mixed(turn, at as u64 + 1) % step as u64) as usize;
        // Within the run, whose numbers fit u32.
        let numbers = (0..taken).map(|n| run.start + (offset + n * step) as u32);
        chosen.extend(numbers.map(|number| (at, number)));
    }
    chosen
}

/// A number that looks random in each turn, and for each `salt` another one: the output function of SplitMix64.
fn mixed(turn: u64, salt: u64) -> u64 {
    let seed = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut mixed = seed.wrapping_add(salt.wrapping_mul(0xd6e8_feb8_6659_fd93));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sources_have_the_same_number_of_records() {
        let runs = [0..1000, 1000..1000, 1000..1004, 1004..1005];
        let chosen = choose(&runs, 9, 0);
        let of = |run| chosen.iter().filter(|(at, _)| *at == run).count();
        assert_eq!([of(0), of(1), of(2), of(3)], [3, 0, 3, 1]);
        assert_eq!(choose(&runs, 0, 0), []);
        assert_eq!(choose(&[], 5, 0), []);
    }

    #[test]
    fn in_time_every_source_and_every_record_has_its_turn() {
        let runs: Vec<_> = (0..10).map(|n| 10 * n..10 * n + 10).collect();
        let mut seen = vec![0; 100];
        for turn in 0..5000 {
            for (_, number) in choose(&runs, 3, turn) {
                seen[number as usize] += 1;
            }
        }
        assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
    }

    proptest! {
        #[test]
        fn records_are_of_their_run_and_none_is_there_twice(
            lengths in proptest::collection::vec(0..40_u32, 0..12), max in 0..60_usize, turn: u64,
        ) {
            let mut end = 0;
            let runs: Vec<Range<u32>> = lengths.iter().map(|length| {
                end += length;
                end - length..end
            }).collect();
            let chosen = choose(&runs, max, turn);
            prop_assert!(chosen.len() <= max);
            prop_assert!(chosen.is_sorted_by(|a, b| a.1 < b.1));
            prop_assert!(chosen.iter().all(|(at, number)| runs[*at].contains(number)));
            prop_assert_eq!(chosen.is_empty(), max == 0 || end == 0);
        }
    }
}
