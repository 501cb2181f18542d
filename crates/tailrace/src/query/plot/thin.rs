//! A line of as many points as a picture shows.

/// A place in a picture.
pub(super) type Place = (f64, f64);

/// Width of what holds one column of a line, in units of the picture: a pixel of one that is twice as large.
const COLUMN: f64 = 0.5;

/// The parts of a line between its gaps. `places` go from the left to the right, and `None` is a gap.
///
/// Of the values of a column only the first, the least, the largest and the last are kept, which draws the same line; a gap
/// within a column is not seen.
pub(super) fn runs(places: impl Iterator<Item = Option<Place>>) -> Vec<Vec<Place>> {
    let column_of = |place: &Place| (place.0 / COLUMN).floor();
    let mut runs: Vec<Vec<Place>> = Vec::new();
    let mut column: Vec<Place> = Vec::new();
    let mut is_after_gap = true;
    let mut is_after_column_gap = true;
    for place in places {
        let Some(place) = place else {
            is_after_gap = true;
            continue;
        };
        if column.last().map(column_of) != Some(column_of(&place)) {
            add(&mut runs, &mut column, is_after_column_gap);
            is_after_column_gap = is_after_gap;
        }
        is_after_gap = false;
        column.push(place);
    }
    add(&mut runs, &mut column, is_after_column_gap);
    runs
}

/// Adds what is to be drawn of a column, and empties it.
fn add(runs: &mut Vec<Vec<Place>>, column: &mut Vec<Place>, is_new: bool) {
    let by_height = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
    let least = (0..column.len()).min_by(by_height);
    let largest = (0..column.len()).max_by(by_height);
    let (Some(least), Some(largest)) = (least, largest) else {
        return;
    };
    let mut kept = [0, least, largest, column.len() - 1];
    kept.sort_unstable();
    let mut kept = kept.to_vec();
    kept.dedup();
    let kept = kept.into_iter().map(|at| column[at]);
    match runs.last_mut() {
        Some(run) if !is_new => run.extend(kept),
        _ => runs.push(kept.collect()),
    }
    column.clear();
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn a_line_is_broken_at_gaps() {
        let line = [None, Some((1.0, 5.0)), Some((2.0, 6.0)), None, None];
        let line = line.into_iter().chain([Some((3.0, 1.0)), None]);
        assert_eq!(runs(line), [vec![(1.0, 5.0), (2.0, 6.0)], vec![(3.0, 1.0)]]);
        assert!(runs([None].into_iter()).is_empty());
    }

    #[test]
    fn a_column_keeps_its_ends_and_extremes() {
        let heights = [5.0, 4.0, 9.0, 6.0, 1.0, 3.0, 4.5];
        let line = heights.map(|height| Some((1.0, height))).into_iter();
        // A gap between two columns breaks the line, one within a column does not.
        let line = line.chain([None, Some((1.1, 4.0)), None, Some((1.5, 2.0))]);
        let expected = [
            vec![(1.0, 5.0), (1.0, 9.0), (1.0, 1.0), (1.1, 4.0)],
            vec![(1.5, 2.0)],
        ];
        assert_eq!(runs(line), expected);
    }
}
