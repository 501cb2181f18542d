//! Functions of other databases, and what says the same here. A name that is only written wrongly is told by the names that
//! are near; these are not near.

/// What to write instead of a function that other databases have, where every query can say it.
pub fn other_function(name: &str) -> Option<&'static str> {
    of(name, &SCALAR)
}

/// The same where queries have aggregates.
pub fn other_aggregate(name: &str) -> Option<&'static str> {
    of(name, &AGGREGATES)
}

fn of(name: &str, known: &[(&[&str], &'static str)]) -> Option<&'static str> {
    let is_it = |(names, _): &&(&[&str], _)| names.iter().any(|it| it.eq_ignore_ascii_case(name));
    known.iter().find(is_it).map(|(_, instead)| *instead)
}

const SCALAR: [(&[&str], &str); 32] = [
    (
        &["age", "datediff", "date_diff", "timestampdiff"],
        "extract(epoch FROM b - a)",
    ),
    (&["charindex", "locate"], "strpos(text, 'part')"),
    (&["convert", "to_number"], "CAST(a AS DOUBLE)"),
    (
        &["date_add", "dateadd", "date_sub", "datesub"],
        "time + INTERVAL '1 day'",
    ),
    (&["day", "dayofmonth"], "extract(day FROM time)"),
    (&["dayofweek"], "extract(dow FROM time) + 1"),
    (&["dayofyear"], "extract(doy FROM time)"),
    (&["epoch"], "extract(epoch FROM time)"),
    (&["format", "printf"], "concat('a', b)"),
    (
        &["format_timestamp", "formatdatetime", "strftime"],
        "to_char(time, '%Y-%m-%d')",
    ),
    (&["getdate", "sysdate", "utc_timestamp"], "now()"),
    (
        &[
            "get_json_object",
            "json_extract",
            "json_value",
            "json_query",
        ],
        "json_get(a, 'key')",
    ),
    (&["hour"], "extract(hour FROM time)"),
    (&["if", "iff"], "CASE WHEN a THEN b ELSE c END"),
    (&["isnull"], "a IS NULL"),
    (&["isodow"], "extract(isodow FROM time)"),
    (
        &[
            "json_extract_path_text",
            "json_extract_scalar",
            "json_extract_string",
        ],
        "json_as_text(a, 'key')",
    ),
    (&["lcase"], "lower(text)"),
    (&["len"], "length(text)"),
    (&["minute"], "extract(minute FROM time)"),
    (&["mod"], "a % b"),
    (&["month"], "extract(month FROM time)"),
    (
        &[
            "parse_datetime",
            "parse_timestamp",
            "str_to_date",
            "strptime",
        ],
        "to_timestamp(text, '%Y-%m-%d')",
    ),
    (
        &["regexp_extract", "regexp_substr"],
        "regexp_match(text, '(group)')[1]",
    ),
    (&["regexp_matches"], "regexp_like(text, 'pattern')"),
    (&["safe_divide"], "a / nullif(b, 0)"),
    (&["second"], "extract(second FROM time)"),
    (&["sha2"], "sha256(text)"),
    (&["sign"], "signum(a)"),
    (&["ucase"], "upper(text)"),
    (&["unix_timestamp"], "to_unixtime(time)"),
    (&["year"], "extract(year FROM time)"),
];

const AGGREGATES: [(&[&str], &str); 6] = [
    (&["arbitrary"], "first_value(a)"),
    (&["arg_max", "max_by"], "first_value(a ORDER BY b DESC)"),
    (&["arg_min", "min_by"], "first_value(a ORDER BY b)"),
    (&["collect_list", "list"], "array_agg(a)"),
    (&["count_if", "countif"], "count(*) FILTER (WHERE a)"),
    (&["group_concat", "listagg"], "string_agg(a, ',')"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Clock, Function, Session};

    #[test]
    fn names_are_of_others_and_what_stands_instead_is_here() {
        let session = Session::new(&Clock::default());
        for (names, instead) in SCALAR.iter().chain(&AGGREGATES) {
            for name in *names {
                let found = session.function(name);
                assert!(matches!(found, Function::Unknown(_)), "`{name}` is known");
            }
            let called = instead.split_once('(').map(|(name, _)| name);
            let called =
                called.filter(|name| name.chars().all(|it| it.is_ascii_lowercase() || it == '_'));
            let Some(name) = called.filter(|name| *name != "extract") else {
                continue;
            };
            let found = session.function(name);
            assert!(
                !matches!(found, Function::Unknown(_)),
                "there is no `{name}`"
            );
        }
        assert_eq!(
            other_function("STRFTIME"),
            Some("to_char(time, '%Y-%m-%d')")
        );
        assert_eq!(other_function("arg_max"), None);
    }
}
