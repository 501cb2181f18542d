//! A query that needs more memory than it may have: which part of it.

use super::Error;

/// What DataFusion calls those who keep something, by a part of the name, and what of a query they are.
const CONSUMERS: [(&str, &str); 10] = [
    ("Aggregate", "GROUP BY, DISTINCT or an aggregate"),
    ("NestedLoopJoin", "a join without an equality"),
    ("CrossJoin", "a join without an equality"),
    ("PiecewiseMergeJoin", "a join without an equality"),
    ("Join", "a join"),
    ("SMJ", "a join"),
    ("Sort", ORDER),
    ("TopK", ORDER),
    ("Repartition", "rows on their way between threads"),
    ("Recursive", "WITH RECURSIVE"),
];
const ORDER: &str = "ORDER BY or a window";

/// The error for what DataFusion says, of a query that may have so many bytes.
pub(super) fn exhausted(text: &str, memory_bytes: usize) -> Error {
    let failed = text.split_once("Failed to allocate additional ");
    let asked = failed.and_then(|(_, rest)| rest.split_once(" for "));
    let (asked, consumer) = match asked {
        Some((asked, rest)) => (Some(asked), rest.split(" with ").next().unwrap_or(rest)),
        None if text.contains("one side of a join") => (None, "Join"),
        None => (None, ""),
    };
    let known = CONSUMERS.iter().find(|(name, _)| consumer.contains(name));
    let what = known.map(|(_, what)| *what);
    let limit = size(memory_bytes);
    let part = match (what, asked) {
        (Some(what), Some(asked)) => format!(": {what} asked for {asked} more"),
        (Some(what), None) => format!(": {what} needs more"),
        (None, _) => String::new(),
    };
    let kept_whole = match what {
        Some(ORDER) => "",
        _ => {
            "; several DISTINCT aggregates, exact percentiles, ordered lists, NOT IN and joins without an equality are kept in memory whole"
        }
    };
    Error {
        is_memory: true,
        hint: Some(format!("raise `--memory-limit`{kept_whole}")),
        ..Error::failure(format!(
            "the query needs more memory than `--memory-limit` grants, which is {limit}{part}"
        ))
    }
}

/// Bytes for people.
fn size(bytes: usize) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.iter().find(|(_, bits)| bytes >> bits > 0);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(name, bits)| {
            let tenths = (bytes as u128 * 10) >> bits;
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        },
    )
}

/// Rows that wait on disk, where there is no room for them or no directory.
pub(super) fn of_disk(text: &str) -> Option<Error> {
    let reason = text.split_once("IO error: ").map(|(_, reason)| reason)?;
    let reason = match reason.split_once(" at path ") {
        Some((reason, _)) => reason,
        None if reason.starts_with("No space left") => reason,
        None => return None,
    };
    Some(Error {
        hint: Some(
            "the variable TMPDIR names another directory; a larger `--memory-limit` needs less on disk"
                .to_owned(),
        ),
        ..Error::failure(format!(
            "rows that do not fit into `--memory-limit` cannot wait in {}: {reason}",
            std::env::temp_dir().display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_asked_is_named() {
        let of = |consumer: &str| {
            let text = format!(
                "Additional allocation failed for {consumer} with top memory consumers (across reservations) as: ExternalSorterMerge[0]#5(can spill: false) consumed 3.1 KB. Error: Failed to allocate additional 689.3 KB for {consumer} with 0.0 B already allocated for this reservation - 94.6 KB remain available"
            );
            exhausted(&text, 100_000)
        };
        let order = of("ExternalSorter[0]");
        assert_eq!(
            order.message,
            "the query needs more memory than `--memory-limit` grants, which is 97.6 KiB: ORDER BY or a window asked for 689.3 KB more"
        );
        assert_eq!(order.hint.as_deref(), Some("raise `--memory-limit`"));
        assert!(order.is_memory && !order.is_usage);
        let groups = of("GroupedHashAggregateStream[1] (count(1))");
        assert!(groups.message.contains(": GROUP BY"), "{}", groups.message);
        assert!(groups.hint.is_some_and(|hint| hint.contains("DISTINCT")));
        assert!(of("CrossJoinExec").message.contains("without an equality"));
        let side = exhausted(
            "one side of a join needs more than the 5 bytes that it may have",
            7,
        );
        assert!(
            side.message
                .ends_with(", which is 7 bytes: a join needs more"),
            "{}",
            side.message
        );
    }

    #[test]
    fn a_disk_without_room_is_named() {
        let of = |text: &str| of_disk(text).map(|error| error.message);
        let begin = format!(
            "rows that do not fit into `--memory-limit` cannot wait in {}: ",
            std::env::temp_dir().display()
        );
        assert_eq!(
            of("Arrow error: Io error: IO error: No space left on device (os error 28)"),
            Some(format!("{begin}No space left on device (os error 28)"))
        );
        assert_eq!(
            of("IO error: No such file or directory (os error 2) at path \"/nowhere/.tmpGqmsES\""),
            Some(format!("{begin}No such file or directory (os error 2)"))
        );
        assert_eq!(of("IO error: permission denied"), None);
    }
}
