//! For tests: a batch through a [`Transform`] in each of its ways, and a prefilter in plain words.

use arrow::array::UInt32Array;
use arrow::compute::take;

use super::*;

/// A way to transform a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    OnePhase,
    TwoPhases,
    /// With records left out as D3 allows, whatever the scanner does.
    Prefiltered,
}

impl Transform {
    pub(crate) fn run_as(&mut self, way: Way, plan: &PipelinePlan, framed: &Framed) -> Transformed {
        let pushdown = plan.query.pushdown();
        let (Some(pushdown), false) = (pushdown, way == Way::OnePhase) else {
            return self.one_phase(plan, framed);
        };
        if way == Way::TwoPhases {
            return self.two_phases(plan, framed, pushdown);
        }
        self.take(framed);
        let (candidates, first) = self.first_phase(plan, framed);
        let given = candidates.unwrap_or_else(|| (0..self.records.len() as u32).collect());
        let passes = |place: &u32| {
            let record = self.records[given[*place as usize] as usize];
            let bytes = &framed.buffers[record.buffer as usize];
            may_meet(pushdown, &bytes[record.start as usize..record.end as usize])
        };
        let places: Vec<u32> = (0..given.len() as u32).filter(passes).collect();
        let candidates = places.iter().map(|&place| given[place as usize]).collect();
        let places = UInt32Array::from(places);
        let first: Vec<ArrayRef> = first
            .iter()
            .map(|column| take(column, &places, None).unwrap())
            .collect();
        self.second_phase(plan, framed, pushdown, Some(candidates), &first)
    }
}

/// D3: whether a record holds the needles, or escapes behind which it may.
fn may_meet(pushdown: &Pushdown, record: &[u8]) -> bool {
    let holds = |text: &[u8]| record.windows(text.len()).any(|part| part == text);
    let found = |needle: &tailrace_sql::Needle| {
        let odd = |ch: char| matches!(ch, '"' | '\\' | '/') || ch < ' ';
        let escape = if needle.text.contains(odd) {
            "\\"
        } else {
            "\\u"
        };
        let text = match needle.quoted {
            true => format!("\"{}\"", needle.text),
            false => needle.text.clone(),
        };
        holds(escape.as_bytes()) || holds(text.as_bytes())
    };
    let mut all = pushdown.prefilter.iter();
    all.all(|needles| needles.any.iter().any(found))
}
