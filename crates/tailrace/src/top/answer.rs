//! Reads the agent's answers. They come from a process that may be another version, or no agent at all: what is missing is
//! zero, empty or unknown, and every text is escaped here.

use serde_json::Value;

use crate::printed;

/// A number, unknown if there is none.
pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// A count, 0 if there is none.
pub(super) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// A text on one line.
pub(super) fn text(value: &Value) -> String {
    printed::shown(value.as_str().unwrap_or(""))
}

/// The lines of a text.
pub(super) fn lines(value: &Value) -> Vec<String> {
    let text = value.as_str().unwrap_or("");
    text.trim_end().lines().map(printed::shown).collect()
}

/// The items of a list.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The sum of a number of all outputs of a pipeline.
pub(super) fn sum_of_outputs(pipeline: &Value, key: &str) -> f64 {
    let outputs = list(&pipeline["outputs"]).iter();
    outputs.map(|output| number(&output[key])).sum()
}
