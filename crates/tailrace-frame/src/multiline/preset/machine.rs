//! A state machine over lines: the first of its rules that holds decides.

/// A state of a machine, 0 to 7.
pub(super) type State = u8;

/// Outside any trace.
pub(super) const OUTSIDE: State = 0;

#[derive(Debug)]
pub(super) struct Machine {
    /// Outside a trace only a line that begins or ends with one of these has a rule.
    pub(super) first: &'static [u8],
    pub(super) last: &'static [u8],
    pub(super) rules: &'static [Rule],
}

#[derive(Debug)]
pub(super) struct Rule {
    /// A bit for each state in which it holds.
    pub(super) within: u8,
    pub(super) is: Is,
    /// The line continues the record before it, or else begins one.
    pub(super) continues: bool,
    pub(super) to: State,
}

/// Which lines a rule is about.
#[derive(Debug)]
pub(super) enum Is {
    Line(fn(&[u8]) -> bool),
    /// It takes the line and the record before it.
    After(fn(&[u8], &[u8]) -> bool),
}

impl Machine {
    /// Whether the line continues, and the state after it.
    pub(super) fn step(&self, state: State, line: &[u8], before: &[u8]) -> (bool, State) {
        let holds = |rule: &&Rule| {
            rule.within & (1 << state) != 0
                && match rule.is {
                    Is::Line(is) => is(line),
                    Is::After(is) => is(line, before),
                }
        };
        let rule = self.rules.iter().find(holds);
        rule.map_or((false, OUTSIDE), |rule| (rule.continues, rule.to))
    }
}
