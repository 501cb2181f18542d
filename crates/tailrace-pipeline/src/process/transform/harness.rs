//! For tests: a batch through a [`Transform`] in each of its ways.

use super::*;

/// A way to transform a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    OnePhase,
    TwoPhases,
}

impl Transform {
    pub(crate) fn run_as(&mut self, way: Way, plan: &PipelinePlan, framed: &Framed) -> Transformed {
        let pushdown = plan.query.pushdown();
        let (Some(pushdown), false) = (pushdown, way == Way::OnePhase) else {
            return self.one_phase(plan, framed);
        };
        self.two_phases(plan, framed, pushdown)
    }
}
