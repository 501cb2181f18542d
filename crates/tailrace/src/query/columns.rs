//! `--columns NAME=TYPE,...`: names and types of columns.

use tailrace_query::{Type, type_of};

/// The columns of one `--columns`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Columns(pub(super) Vec<(String, Type)>);

/// `name=type`, and more of them after commas. A comma before any `=` belongs to the name.
pub(super) fn columns(text: &str) -> Result<Columns, String> {
    let mut columns = Vec::new();
    let mut name_start = 0;
    let mut at = 0;
    for piece in text.split(',') {
        let end = at + piece.len();
        if piece.contains('=') || end == text.len() {
            columns.push(column(&text[name_start..end])?);
            name_start = end + 1;
        }
        at = end + 1;
    }
    Ok(Columns(columns))
}

fn column(text: &str) -> Result<(String, Type), String> {
    let (name, ty) = text
        .rsplit_once('=')
        .ok_or_else(|| format!("`{text}` is not NAME=TYPE, as in status=int64"))?;
    Ok((name.to_owned(), type_of(ty)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_commas() {
        let names = |text: &str| {
            let Columns(columns) = columns(text)?;
            let name = |(name, ty): (String, Type)| format!("{name}:{}", ty.name());
            Ok::<_, String>(columns.into_iter().map(name).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names("a=text,b=int64").as_deref(), Ok("a:text b:int64"));
        assert_eq!(names("a,b=int64,c=text").as_deref(), Ok("a,b:int64 c:text"));
        assert_eq!(names("a=b=boolean").as_deref(), Ok("a=b:boolean"));
        for wrong in ["", "a", "a=text,", "a=text,b", "a=in64,b=text"] {
            assert!(names(wrong).is_err(), "{wrong}");
        }
    }
}
