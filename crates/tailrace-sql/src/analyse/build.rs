//! Expressions of the parser's tree: what they are, and new ones.
//!
//! Never knows which keys a query reads.

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, DataType as SqlType, Expr, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, ObjectNamePart, Spanned,
    TimezoneInfo, UnaryOperator, Value,
};

use crate::signature::{self, Arguments};
use crate::types::Type;
use crate::value::Function;

/// Without parentheses around it.
pub(crate) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => bare(inner),
        other => other,
    }
}

pub(super) fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_null(inner),
        Expr::Value(value) => value.value == Value::Null,
        _ => false,
    }
}

pub(super) fn is_sign(op: UnaryOperator) -> bool {
    matches!(op, UnaryOperator::Plus | UnaryOperator::Minus)
}

pub(super) fn is_json(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Arrow | BinaryOperator::LongArrow)
}

/// The arguments a call chooses from, if it is such a call.
pub(super) fn alternatives(function: &ast::Function) -> Option<Vec<&Expr>> {
    let name = function.name.to_string().to_lowercase();
    if signature::arguments(&name) != Arguments::Alternatives || is_list(&name) {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let plain = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    plain.collect()
}

pub(super) fn is_list(name: &str) -> bool {
    matches!(name, "make_array" | "make_list")
}

/// A call of one of the functions over values of any kind.
pub(super) fn of_values(function: Function, arguments: Vec<Expr>) -> Expr {
    call(function.name(), arguments)
}

/// A call of `name`, which is a lowercase function name.
pub(super) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let function = ast::Function {
        name: ObjectName(Vec::new()),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::None,
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    };
    call_in_place(function, name, arguments)
}

/// An expression as a value of any kind.
pub(crate) fn as_value(expr: Expr) -> Expr {
    of_values(Function::Value, vec![expr])
}

/// A cast to an Arrow type that SQL has no name for.
pub(crate) fn arrow_cast(expr: Expr, ty: &arrow::datatypes::DataType) -> Expr {
    call(
        "arrow_cast",
        vec![expr, Expr::value(Value::SingleQuotedString(ty.to_string()))],
    )
}

pub(super) fn call_in_place(mut function: ast::Function, name: &str, arguments: Vec<Expr>) -> Expr {
    let span = function.name.span();
    let ident = Ident {
        value: name.to_owned(),
        quote_style: name.starts_with('#').then_some('"'),
        span,
    };
    function.name = ObjectName(vec![ObjectNamePart::Identifier(ident)]);
    let args = arguments
        .into_iter()
        .map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)))
        .collect();
    function.args = FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args,
        clauses: Vec::new(),
    });
    Expr::Function(function)
}

/// A type as SQL writes it.
pub(super) fn sql_type(ty: Type) -> SqlType {
    match ty {
        Type::Open | Type::Value | Type::Text => SqlType::Text,
        Type::Int64 => SqlType::BigInt(None),
        Type::Float64 => SqlType::Double(datafusion::sql::sqlparser::ast::ExactNumberInfo::None),
        Type::Boolean => SqlType::Boolean,
        Type::Timestamp => SqlType::Timestamp(None, TimezoneInfo::Tz),
    }
}

pub(super) fn try_cast(expr: Expr, ty: Type) -> Expr {
    Expr::Cast {
        kind: CastKind::TryCast,
        expr: Box::new(expr),
        data_type: sql_type(ty),
        array: false,
        format: None,
    }
}
