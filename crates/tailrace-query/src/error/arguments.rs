//! A call whose arguments are of types that the function does not take.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
};
use tailrace_sql::walk::expressions_mut;

use super::Error;
use super::planning::{find, place_of, type_name};

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
    let found = find(query, |expr| match expr {
        Expr::Function(called) => {
            called.name.to_string().eq_ignore_ascii_case(name)
                && arguments(called).len() == types.len()
        }
        _ => false,
    });
    let wants_numbers = ["Numeric", "Float", "Decimal", "Int64"]
        .iter()
        .any(|kind| text.contains(kind));
    let texts = types.iter().position(|ty| ty.contains("Utf8"));
    if let (Some(Expr::Function(called)), true, Some(at)) = (&found, wants_numbers, texts) {
        let argument = arguments(called)[at];
        let cast = with_cast(called, argument);
        let column = match argument {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.last(),
            _ => None,
        };
        let column = column
            .filter(|_| has_lines)
            .map_or_else(String::new, |column| {
                format!(", and so does `--columns {}=float64`", column.value)
            });
        return Some(Error {
            place: place_of(argument),
            hint: Some(format!("`{cast}` takes the texts that are numbers{column}")),
            ..Error::usage(format!("`{name}` takes numbers, and `{argument}` is text"))
        });
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

/// The call with an argument that is made a number.
fn with_cast(called: &ast::Function, argument: &Expr) -> Expr {
    let mut called = Expr::Function(called.clone());
    let _ = expressions_mut(&mut called, &mut |expr| {
        if expr == argument {
            let text = format!("TRY_CAST({expr} AS DOUBLE)");
            *expr = Expr::Identifier(ast::Ident::new(text));
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
