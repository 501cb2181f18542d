//! The plan of a pipeline as JSON: what the tables of `tailrace explain` show, for programs.

use serde_json::{Value, json};
use tailrace_pipeline::{ColumnFrom, PipelinePlan};
use tailrace_sql::{Branch, When};

use super::{from_text, multiline_text, texts, value_of};
use crate::printed;

/// One pipeline. `check` says whether logs that this user may not read are listed.
pub(super) fn pipeline(plan: &PipelinePlan, check: bool) -> Value {
    let columns = plan.query.columns().iter().zip(&plan.columns);
    let columns = columns.map(|(column, from)| {
        let uses = column
            .uses
            .iter()
            .map(|used| json!({"expression": used.expression, "line": used.line, "why": used.why}));
        json!({
            "key": column.label,
            "type": column.ty.to_string(),
            "from": from_text(from),
            "is_scanned": matches!(from, ColumnFrom::Scan(_)),
            "uses": uses.collect::<Vec<_>>(),
        })
    });
    let star = plan.query.star().map(
        |star| json!({"except": star.except.as_slice(), "columns_max": plan.config.limits.columns}),
    );
    let multiline = plan.config.inputs.iter().filter_map(multiline_text);
    let mut object = json!({
        "pipeline": plan.name,
        "query": plan.config.transform.shown.trim(),
        "multiline": multiline.collect::<Vec<_>>(),
        "columns": columns.collect::<Vec<_>>(),
        "every_other_key": star,
        "selects": plan.query.branches().iter().map(|it| select(plan, it)).collect::<Vec<_>>(),
    });
    if check {
        let unreadable = tailrace_pipeline::unreadable(plan);
        let denied = unreadable
            .iter()
            .flat_map(|(position, of_input)| of_input.denied.iter().map(move |it| (position, it)));
        let denied = denied.map(|(position, denied)| {
            json!({
                "file": position.file().to_string_lossy(),
                "line": position.line(),
                "column": position.column(),
                "path": denied.path.to_string_lossy(),
                "message": denied.message,
            })
        });
        object["unreadable"] = denied.collect();
        let is_complete = unreadable.iter().all(|(_, of_input)| of_input.is_complete);
        object["unreadable_is_complete"] = is_complete.into();
    }
    redact(&mut object, &|text| {
        let text = printed::redacted(text);
        plan.config.transform.redact(&text).into_owned()
    });
    object
}

fn select(plan: &PipelinePlan, branch: &Branch) -> Value {
    let conditions = branch.predicate.iter().map(|conjunct| {
        let columns = conjunct.columns.iter();
        let reads: Vec<&str> = columns
            .map(|&n| plan.query.columns()[n].name.as_str())
            .collect();
        let (evaluated, prefilter) = match &conjunct.when {
            When::Prefilter(needles) => ("prefilter", Some(texts(needles))),
            When::PushedDown => ("pushed down", None),
            When::After => ("after", None),
        };
        json!({
            "condition": conjunct.text,
            "reads": reads,
            "evaluated": evaluated,
            "texts": prefilter,
        })
    });
    let outputs = plan.config.outputs.iter().map(|output| {
        let columns = branch.outputs.iter().map(|column| {
            json!({
                "column": column.name,
                "becomes": output.kind.becomes(Some(&column.name)),
                "value": value_of(plan, &column.value),
            })
        });
        json!({
            "output": output.name,
            "type": output.kind.type_name(),
            "columns": columns.collect::<Vec<_>>(),
            "every_other_key_becomes": branch.star.then(|| output.kind.becomes(None)),
        })
    });
    json!({
        "conditions": conditions.collect::<Vec<_>>(),
        "row_wise": branch.row_wise,
        "why_not_row_wise": branch.reason.as_ref().map(ToString::to_string),
        "outputs": outputs.collect::<Vec<_>>(),
    })
}

/// Replaces every string below a value. Keys are those of this file.
fn redact(value: &mut Value, with: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = with(text),
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, with)),
        Value::Object(members) => members.values_mut().for_each(|item| redact(item, with)),
        _ => {}
    }
}
