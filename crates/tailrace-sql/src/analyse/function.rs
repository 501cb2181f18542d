//! Function calls: refused, or their arguments typed by the function.

use arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CaseWhen, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Spanned,
    Value,
};

use super::build::{call_in_place, is_list, of_values};
use super::literals::is_constant;
use super::peers::Joined;
use super::{Analysis, Force, Want, constant};
use crate::error::Error;
use crate::other_functions::other_function;
use crate::session::Function as Known;
use crate::signature::{self, Arguments};
use crate::types::Type;
use crate::value::Function;
use crate::value::array::is_value;

impl Analysis<'_> {
    pub(super) fn function(
        &mut self,
        mut function: ast::Function,
        want: &Want,
    ) -> Result<Expr, Error> {
        let around = function.to_string();
        let place = self.places.of(function.name.span());
        let name = function.name.to_string().to_lowercase();
        if function.over.is_some() {
            let error = place.error("a window function is not possible on a stream of records");
            return Err(error.with_hint("a query sees one record at a time"));
        }
        let name = match name.as_str() {
            "nvl" | "ifnull" => "coalesce".to_owned(),
            _ => name,
        };
        if let Some(rewritten) = self.choice(&name, &mut function)? {
            return self.case(rewritten, want);
        }
        let known = self.session.function(&name);
        match &known {
            Known::ManyRows => {
                let error = place.error(format!(
                    "`{name}` combines records, which a stream of batches cannot"
                ));
                return Err(error.with_hint("a query sees one record at a time"));
            }
            Known::Unknown(nearest) => {
                let hint = match (other_function(&name), nearest) {
                    (Some(instead), _) => format!("write `{instead}`"),
                    (None, Some(nearest)) => format!("did you mean `{nearest}`?"),
                    (None, None) => {
                        "the functions are DataFusion's scalar functions and json_get and its kin"
                            .to_owned()
                    }
                };
                return Err(place
                    .error(format!("unknown function `{name}`"))
                    .with_hint(hint));
            }
            Known::Unnest if !self.unnest_allowed => {
                let error = place.error("`unnest` makes rows, which only the SELECT list can");
                return Err(error.with_hint("use `array_has(list, value)` in a condition"));
            }
            Known::Unnest => self.unnest_found = true,
            Known::Scalar(_) => {}
        }
        let odd = function.filter.is_some()
            || function.null_treatment.is_some()
            || !function.within_group.is_empty()
            || !matches!(function.parameters, FunctionArguments::None);
        if odd {
            let error = place.error(format!("only plain arguments are possible in `{name}`"));
            return Err(error.with_hint("write `function(value, ...)`"));
        }
        let arguments = self.plain_arguments(&mut function, &name)?;
        let arguments = match signature::arguments(&name) {
            Arguments::Alternatives => {
                let nothing = Want::nothing("the elements of a list have one type", &around);
                let (joined, want) = if is_list(&name) {
                    (Joined::Element, &nothing)
                } else {
                    (Joined::Value, want)
                };
                let peers = self.peers(arguments, joined, &around, want)?;
                let extreme = match name.as_str() {
                    "greatest" => Some(Function::Greatest),
                    "least" => Some(Function::Least),
                    _ => None,
                };
                if let Some(extreme) = extreme.filter(|_| peers.are_values) {
                    return self.fit(of_values(extreme, peers.exprs), want);
                }
                peers.exprs
            }
            Arguments::Each => self.each(arguments, &known, &name, &around)?,
        };
        let call = match name.as_str() {
            // The row's own child, which DataFusion's makes a 64-bit number of.
            "json_get" if arguments.len() > 1 => of_values(Function::JsonGet, arguments),
            _ => call_in_place(function, &name, arguments),
        };
        self.type_of(&call)?;
        self.fit(call, want)
    }

    /// Functions that are a CASE by another name, as that CASE.
    fn choice(&self, name: &str, function: &mut ast::Function) -> Result<Option<Expr>, Error> {
        let is_plain = function.over.is_none() && function.filter.is_none();
        let FunctionArguments::List(list) = &function.args else {
            return Ok(None);
        };
        let count = list.args.len();
        let case = |condition, result, otherwise| Expr::Case {
            case_token: AttachedToken::empty(),
            end_token: AttachedToken::empty(),
            operand: None,
            conditions: vec![CaseWhen { condition, result }],
            else_result: Some(Box::new(otherwise)),
        };
        match name {
            "nullif" if count == 2 && is_plain => {
                let mut arguments = self.plain_arguments(function, name)?.into_iter();
                let (Some(value), Some(other)) = (arguments.next(), arguments.next()) else {
                    return Ok(None);
                };
                let is_equal = Expr::BinaryOp {
                    left: Box::new(nested(value.clone())),
                    op: BinaryOperator::Eq,
                    right: Box::new(nested(other)),
                };
                Ok(Some(case(is_equal, Expr::value(Value::Null), value)))
            }
            "nvl2" if count == 3 && is_plain => {
                let mut arguments = self.plain_arguments(function, name)?.into_iter();
                let (Some(value), Some(present), Some(absent)) =
                    (arguments.next(), arguments.next(), arguments.next())
                else {
                    return Ok(None);
                };
                let is_present = Expr::IsNotNull(Box::new(value));
                Ok(Some(case(is_present, present, absent)))
            }
            _ => Ok(None),
        }
    }

    fn plain_arguments(
        &self,
        function: &mut ast::Function,
        name: &str,
    ) -> Result<Vec<Expr>, Error> {
        let place = self.places.of(function.name.span());
        let refuse = || {
            let error = place.error(format!("only plain arguments are possible in `{name}`"));
            error.with_hint("write `function(value, ...)`")
        };
        match std::mem::replace(&mut function.args, FunctionArguments::None) {
            FunctionArguments::None => Ok(Vec::new()),
            FunctionArguments::Subquery(_) => Err(refuse()),
            FunctionArguments::List(list) => {
                if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
                    return Err(refuse());
                }
                let plain = |argument| match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
                    _ => Err(refuse()),
                };
                list.args.into_iter().map(plain).collect()
            }
        }
    }

    fn each(
        &mut self,
        arguments: Vec<Expr>,
        known: &Known,
        name: &str,
        around: &str,
    ) -> Result<Vec<Expr>, Error> {
        let count = arguments.len();
        if matches!(name, "arrow_cast" | "arrow_try_cast") {
            return self.arrow_cast(arguments, around);
        }
        let mut result = Vec::with_capacity(count);
        for (index, argument) in arguments.into_iter().enumerate() {
            self.check_constant(&argument, name, index)?;
            let ty = match known {
                Known::Scalar(udf) => signature::argument(udf, name, index, count),
                _ => None,
            };
            let want = match ty {
                Some(ty) => Want::new(ty, format!("argument of {name}"), Force::Fixed, around),
                None => Want::nothing("the function takes any type", around),
            };
            result.push(self.rewrite(argument, &want)?);
        }
        Ok(result)
    }

    /// DataFusion wants some arguments to be the same for all records.
    fn check_constant(&self, argument: &Expr, name: &str, index: usize) -> Result<(), Error> {
        let what = match (name, index) {
            ("date_trunc" | "datetrunc" | "date_part" | "datepart", 0) => "unit",
            ("date_bin", 0) => "stride",
            ("date_bin", 2) => "origin",
            ("encode" | "decode", 1) => "encoding",
            ("to_time", 1..) => "format",
            _ => return Ok(()),
        };
        if self.key(argument)?.is_none() && is_constant(argument) {
            return Ok(());
        }
        let place = self.places.of(argument.span());
        let error = place.error(format!(
            "the {what} of `{name}` is the same for all records"
        ));
        let hint = format!("write a literal; a CASE may choose between calls with one {what} each");
        Err(error.with_hint(hint))
    }

    // The second argument names an Arrow type.
    fn arrow_cast(&mut self, arguments: Vec<Expr>, around: &str) -> Result<Vec<Expr>, Error> {
        let named = match arguments.get(1) {
            Some(Expr::Value(value)) => {
                constant::text(&value.value).and_then(|text| text.parse().ok())
            }
            _ => None,
        };
        // An unsigned integer may be beyond one with a sign.
        let is_unsigned = named == Some(DataType::UInt64);
        let ty = match is_unsigned {
            true => Some(Type::Value),
            false => named.as_ref().and_then(signature::key_type),
        };
        let want = match ty {
            Some(ty) => Want::new(ty, "cast to this type", Force::Cast, around),
            None => Want::nothing("the cast names no type a key can have", around),
        };
        let rewritten = arguments.into_iter().map(|argument| {
            let expr = self.rewrite(argument, &want)?;
            Ok(match is_unsigned && is_value(&self.type_of(&expr)?) {
                true => of_values(Function::ToUint64, vec![expr]),
                false => expr,
            })
        });
        rewritten.collect()
    }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}
