//! What is wrong with single words or texts of a query.

use super::planning::place_in;
use super::{Error, word_in};

/// What DataFusion says of a word, wherever it stands and whatever the data are.
struct Plain {
    /// A part of what it says.
    text: &'static str,
    /// The word of the query, in capitals.
    word: &'static str,
    message: &'static str,
    hint: &'static str,
}

const PLAIN: [Plain; 7] = [
    Plain {
        text: "LIMIT must be >= 0",
        word: "LIMIT",
        message: "LIMIT takes a number of rows, which is not negative",
        hint: "write LIMIT 10",
    },
    Plain {
        text: "Expected LIMIT to be an integer",
        word: "LIMIT",
        message: "LIMIT takes a number of rows, which is whole",
        hint: "write LIMIT 10",
    },
    Plain {
        text: "OFFSET must be >=0",
        word: "OFFSET",
        message: "OFFSET takes a number of rows, which is not negative",
        hint: "write OFFSET 10",
    },
    Plain {
        text: "FETCH clause is not supported",
        word: "FETCH",
        message: "FETCH is not supported",
        hint: "LIMIT 10 at the end takes ten rows",
    },
    Plain {
        text: "This feature is not implemented: TOP",
        word: "TOP",
        message: "TOP is not supported",
        hint: "LIMIT 10 at the end takes ten rows",
    },
    Plain {
        text: "wildcard * with RENAME not supported",
        word: "RENAME",
        message: "RENAME is not supported",
        hint: "SELECT * EXCLUDE (a), a AS b gives a column another name",
    },
    Plain {
        text: "QUALIFY clause requires window functions",
        word: "QUALIFY",
        message: "QUALIFY is about window functions, and the query has none",
        hint: "write the condition in WHERE, or in HAVING if it is about groups",
    },
];

/// What single words or texts of the query say.
pub(super) fn of_words(text: &str, sql: &str) -> Option<Error> {
    let upper = sql.to_ascii_uppercase();
    if let Some(plain) = PLAIN.iter().find(|plain| text.contains(plain.text)) {
        return Some(Error {
            place: word_in(&upper, plain.word),
            hint: Some(plain.hint.to_owned()),
            ..Error::usage(plain.message)
        });
    }
    if let Some(error) = of_series(text, &upper).or_else(|| of_recursion(text, &upper)) {
        return Some(error);
    }
    if let Some((_, column)) = text.split_once("Schema contains duplicate qualified field name ") {
        let words = ["CUBE", "ROLLUP", "GROUPING"];
        return Some(Error {
            place: Some(words.iter().find_map(|word| word_in(&upper, word))?),
            hint: Some("name each column once in it".to_owned()),
            ..Error::usage(format!("the sets of groups have `{column}` twice"))
        });
    }
    if text.contains("queries have different number of columns") {
        let words = ["UNION", "INTERSECT", "EXCEPT"];
        return Some(Error {
            place: words.iter().find_map(|word| word_in(&upper, word)),
            hint: Some("NULL stands for a column that one of them lacks".to_owned()),
            ..Error::usage("the queries that are put together have different numbers of columns")
        });
    }
    if let Some((_, ty)) = text.split_once("Unsupported SQL type ") {
        return Some(Error {
            place: word_in(sql, ty).or_else(|| word_in(&upper, ty)),
            hint: Some(
                "types are TEXT, BIGINT, DOUBLE, BOOLEAN, TIMESTAMP, DATE and DECIMAL(precision, scale)"
                    .to_owned(),
            ),
            ..Error::usage(format!("there is no type `{ty}`"))
        });
    }
    if let Some((_, value)) = text.split_once("Invalid input syntax for type interval: ") {
        let value = value.trim_matches('"');
        return Some(Error {
            place: place_in(sql, &format!("'{value}'")),
            hint: Some("write INTERVAL '1 hour 30 minutes'".to_owned()),
            ..Error::usage(format!("'{value}' is no interval"))
        });
    }
    if text.starts_with("Substring without for/from is not valid") {
        return Some(Error {
            place: word_in(&upper, "SUBSTR").or_else(|| word_in(&upper, "SUBSTRING")),
            hint: Some("write substr(text, 1, 10): from the first on, ten characters".to_owned()),
            ..Error::usage("`substr` lacks where the part begins")
        });
    }
    let (_, table) = text.split_once("Invalid qualifier ")?;
    Some(Error {
        place: word_in(sql, table),
        hint: Some("FROM gives tables their names".to_owned()),
        ..Error::usage(format!("there is no table `{table}` here"))
    })
}

/// `generate_series` and `range` in FROM, as `upper` has them, with arguments that they do not take.
fn of_series(text: &str, upper: &str) -> Option<Error> {
    const SAID: [&str; 6] = [
        "must be an INTEGER",
        "must be a timestamp or NULL",
        "must be a date or NULL",
        "must be an interval or NULL",
        "requires exactly 3 arguments",
        "Arguments must be literals",
    ];
    if !SAID.iter().any(|said| text.contains(said)) {
        return None;
    }
    let place = ["GENERATE_SERIES", "RANGE"]
        .iter()
        .find_map(|word| word_in(upper, word));
    Some(Error {
        place: Some(place?),
        hint: Some(
            "write generate_series(1, 10), or generate_series(DATE '2026-01-01', DATE '2026-01-31', INTERVAL '1 day')"
                .to_owned(),
        ),
        ..Error::usage(
            "a series in FROM has whole numbers, or two times and an interval, all known before the query runs",
        )
    })
}

/// A column of a recursive query whose first SELECT reads values of several types, which only agree afterwards.
fn of_recursion(text: &str, upper: &str) -> Option<Error> {
    let (_, rest) = text.split_once("to expected output field '")?;
    let (name, _) = rest.split_once("': field data type differs")?;
    Some(Error {
        place: Some(word_in(upper, "RECURSIVE")?),
        hint: Some("cast it in the first SELECT, as CAST(x AS DOUBLE) does".to_owned()),
        ..Error::usage(format!(
            "column `{name}` of a recursive query has another type in its second SELECT than in its first"
        ))
    })
}
