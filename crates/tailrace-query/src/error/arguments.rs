//! A call whose arguments are of types that the function does not take.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
};
use tailrace_sql::walk::{expressions, expressions_mut};

use super::planning::{find, place_of, type_name};
use super::{Error, word_in};

/// A function that does not take values of these types: `call` begins with its name and them.
pub(super) fn of_arguments(
    text: &str,
    call: &str,
    query: &ast::Query,
    has_lines: bool,
) -> Option<Error> {
    let (call, _) = call.split_once('\'')?;
    let (name, types) = call.strip_suffix(')')?.split_once('(')?;
    let types = parted(types);
    if let [ty] = types[..]
        && let Some(error) = of_trim(name, ty, query)
    {
        return Some(error);
    }
    let found = find(query, |expr| match expr {
        Expr::Function(called) => {
            called.name.to_string().eq_ignore_ascii_case(name)
                && arguments(called).len() == types.len()
        }
        _ => false,
    });
    if let Some(Expr::Function(called)) = &found
        && let Some(error) = of_one(text, called, &types, has_lines)
    {
        return Some(error);
    }
    let types: Vec<_> = types.iter().map(|ty| type_name(ty)).collect();
    let candidates = text.split_once("Candidate functions:").map(|(_, all)| {
        let all = all.replace("\\t", " ");
        all.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    Some(Error {
        place: found.as_ref().and_then(place_of),
        hint: candidates
            .map(|all| format!("it is called as {all}; CAST and TRY_CAST change types")),
        ..Error::usage(format!("`{name}` does not take ({})", types.join(", ")))
    })
}

/// A function in ORDER BY or in a window that does not take a value of this type.
pub(super) fn of_signature(text: &str, query: &ast::Query) -> Option<Error> {
    let (before, errors) = text.split_once("' failed to match any signature, errors: ")?;
    let (_, name) = before.rsplit_once('\'')?;
    let (_, ty) = errors.split_once(" (DataType: ")?;
    let end = [").", "),"].iter().filter_map(|end| ty.find(end)).min()?;
    let ty = &ty[..end];
    of_trim(name, ty, query).or_else(|| {
        let is_it = |expr: &Expr| match expr {
            Expr::Function(called) => called.name.to_string().eq_ignore_ascii_case(name),
            _ => false,
        };
        Some(Error {
            place: find(query, is_it).as_ref().and_then(place_of),
            hint: Some("CAST and TRY_CAST change types".to_owned()),
            ..Error::usage(format!("`{name}` does not take {}", type_name(ty)))
        })
    })
}

/// `trim` of what is no text, where the query has one.
fn of_trim(name: &str, ty: &str, query: &ast::Query) -> Option<Error> {
    if name != "btrim" || !Wanted::Texts.refuses(ty) {
        return None;
    }
    let mut found = Vec::new();
    let _ = expressions(query, &mut |expr| {
        if let Expr::Trim { expr, .. } = expr
            && !found.contains(expr)
        {
            found.push(expr.clone());
        }
        ControlFlow::Continue(())
    });
    let [argument] = &found[..] else {
        return None;
    };
    Some(Error {
        place: place_of(&**argument),
        hint: Some(format!("`trim(CAST({argument} AS TEXT))` takes it as text")),
        ..Error::usage(format!(
            "`trim` takes text, and `{argument}` is {}",
            type_name(ty)
        ))
    })
}

/// What a function takes at a place, by what DataFusion calls it.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Texts,
    Numbers,
    WholeNumbers,
    Lists,
}

impl Wanted {
    fn of(parameter: &str) -> Option<Wanted> {
        let has = |kinds: &[&str]| kinds.iter().any(|kind| parameter.contains(kind));
        if has(&["Numeric", "Float", "Decimal"]) {
            Some(Wanted::Numbers)
        } else if has(&["String", "Utf8"]) {
            Some(Wanted::Texts)
        } else if has(&["Int64", "Integer", "index"]) {
            Some(Wanted::WholeNumbers)
        } else if parameter == "array" || parameter.ends_with(": array") {
            Some(Wanted::Lists)
        } else {
            None
        }
    }

    /// Whether a value of a type is clearly something else.
    fn refuses(self, ty: &str) -> bool {
        let is_text = ty.contains("Utf8") && !ty.contains('(');
        let is_list = ty.contains("List(");
        let is_whole =
            ["Int", "UInt"].iter().any(|it| ty.starts_with(it)) && !ty.starts_with("Interval");
        let is_fraction = ["Float", "Decimal"].iter().any(|it| ty.starts_with(it));
        match self {
            Wanted::Texts => is_whole || is_fraction,
            Wanted::Numbers => is_text,
            Wanted::WholeNumbers => is_text || is_fraction,
            Wanted::Lists => (is_text || is_whole || is_fraction) && !is_list,
        }
    }

    /// The call as it would take the argument.
    fn hint(self, called: &ast::Function, argument: &Expr, is_text: bool) -> String {
        let (before, behind, what) = match self {
            Wanted::Texts => ("CAST(", " AS TEXT)", "takes it as text"),
            Wanted::Numbers => (
                "TRY_CAST(",
                " AS DOUBLE)",
                "takes the texts that are numbers",
            ),
            Wanted::WholeNumbers if is_text => (
                "TRY_CAST(",
                " AS BIGINT)",
                "takes the texts that are whole numbers",
            ),
            Wanted::WholeNumbers => (
                "CAST(",
                " AS BIGINT)",
                "leaves out what stands behind the point",
            ),
            Wanted::Lists if is_text => (
                "json_get_array(",
                ")",
                "takes the members of a JSON array, each as JSON",
            ),
            Wanted::Lists => ("[", "]", "takes a list of one value"),
        };
        let cast = with_cast(called, argument, &format!("{before}{argument}{behind}"));
        format!("`{cast}` {what}")
    }
}

/// A call of which one argument is of another kind than the function takes there.
fn of_one(text: &str, called: &ast::Function, types: &[&str], has_lines: bool) -> Option<Error> {
    let parameters = parameters(text, types.len());
    let of_place = |at: usize| parameters.get(at).and_then(|it| Wanted::of(it));
    let known = (0..types.len())
        .find_map(|at| Some((at, of_place(at).filter(|it| it.refuses(types[at]))?)));
    // Some functions say what they take in a sentence.
    let (at, wanted) = known.or_else(|| {
        let (said, _) = text.split_once("given name and argument types '")?;
        let kinds = ["Numeric", "Float", "Decimal", "Int64"];
        let texts = types.iter().position(|ty| Wanted::Numbers.refuses(ty))?;
        let is_known = (0..parameters.len()).any(|at| of_place(at).is_some());
        let is_said = !is_known && kinds.iter().any(|kind| said.contains(kind));
        is_said.then_some((texts, Wanted::Numbers))
    })?;
    let argument = *arguments(called).get(at)?;
    let name = called.name.to_string().to_ascii_lowercase();
    let ty = type_name(types[at]);
    let hint = wanted.hint(called, argument, ty == "text");
    let column = match argument {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(names) => names.last(),
        _ => None,
    };
    let column = column.filter(|_| has_lines && wanted == Wanted::Numbers);
    let column = column.map_or_else(String::new, |column| {
        format!(", and so does `--columns {}=float64`", column.value)
    });
    let what = match wanted {
        Wanted::Texts => "text",
        Wanted::Numbers => "numbers",
        Wanted::WholeNumbers => "a whole number",
        Wanted::Lists => "a list",
    };
    Some(Error {
        place: place_of(argument),
        hint: Some(hint + &column),
        ..Error::usage(format!("`{name}` takes {what}, and `{argument}` is {ty}"))
    })
}

/// What the parameters of the function are called, if there is one way to call it with so many.
fn parameters(text: &str, count: usize) -> Vec<&str> {
    let Some((_, candidates)) = text.split_once("Candidate functions:") else {
        return Vec::new();
    };
    let calls = candidates.split('\t').map(str::trim);
    let calls = calls.filter_map(|call| call.strip_suffix(')')?.split_once('('));
    let mut lists = calls
        .map(|(_, list)| parted(list))
        .filter(|list| list.len() == count);
    lists.next().unwrap_or_default()
}

/// The call with something else in the place of an argument.
fn with_cast(called: &ast::Function, argument: &Expr, cast: &str) -> Expr {
    let mut called = Expr::Function(called.clone());
    let _ = expressions_mut(&mut called, &mut |expr| {
        if expr == argument {
            *expr = Expr::Identifier(ast::Ident::new(cast));
        }
        ControlFlow::Continue(())
    });
    called
}

/// The arguments of a call, in the order of their types: first what is put in order.
fn arguments(called: &ast::Function) -> Vec<&Expr> {
    let ordered = called.within_group.iter().map(|it| &it.expr);
    let list: &[FunctionArg] = match &called.args {
        FunctionArguments::List(list) => &list.args,
        _ => &[],
    };
    let list = list.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    ordered.chain(list).collect()
}

/// Where an argument of a function stands, counted from 0, or the first call of the function if it is called several times.
pub(crate) fn place_of_argument(sql: &str, name: &str, at: usize) -> Option<(usize, usize)> {
    let query = tailrace_sql::parse_query(sql).ok()?;
    let mut places = Vec::new();
    let _ = expressions(&query, &mut |expr| {
        if let Expr::Function(called) = expr
            && called.name.to_string().eq_ignore_ascii_case(name)
        {
            let argument = arguments(called).get(at).copied();
            places.push(argument.and_then(place_of));
        }
        ControlFlow::Continue(())
    });
    let only = match places[..] {
        [place] => place,
        _ => None,
    };
    only.or_else(|| word_in(&sql.to_ascii_lowercase(), name))
}

/// Types that commas part, unless those stand in parentheses.
fn parted(types: &str) -> Vec<&str> {
    let mut depth = 0;
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, sign) in types.char_indices() {
        match sign {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(types[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(types[start..].trim());
    parts
}
