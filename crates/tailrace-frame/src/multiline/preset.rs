//! Stack traces of languages, each as a small state machine over lines: a table of rules, the first of which holds.
//!
//! A rule says in which states it holds, which lines it is about, whether such a line continues the record before
//! it, and the state after it. A line without a rule begins a record and leaves the trace. The presets of a list run
//! side by side; a line continues if one of them says so.

mod lines;
mod machine;
mod tables;

use machine::{Machine, OUTSIDE};

/// A language whose stack traces are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    /// Java and other languages of the JVM.
    Java,
    /// Python.
    Python,
    /// Go.
    Go,
    /// Ruby.
    Ruby,
    /// C# and other languages of .NET.
    Dotnet,
    /// JavaScript in Node.js.
    Javascript,
    /// Rust.
    Rust,
}

impl Preset {
    /// All there are.
    pub const ALL: [Preset; Preset::COUNT] = [
        Preset::Java,
        Preset::Python,
        Preset::Go,
        Preset::Ruby,
        Preset::Dotnet,
        Preset::Javascript,
        Preset::Rust,
    ];

    pub(super) const COUNT: usize = 7;

    fn machine(self) -> &'static Machine {
        match self {
            Preset::Java => &tables::JAVA,
            Preset::Python => &tables::PYTHON,
            Preset::Go => &tables::GO,
            Preset::Ruby => &tables::RUBY,
            Preset::Dotnet => &tables::DOTNET,
            Preset::Javascript => &tables::JAVASCRIPT,
            Preset::Rust => &tables::RUST,
        }
    }
}

/// Where in a trace a stream is, for each preset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Traces {
    /// By index of the preset in its list; 0 is outside any trace.
    states: [u8; Preset::COUNT],
    /// The presets whose state is not 0, a bit for each.
    inside: u8,
}

/// The presets of one input.
#[derive(Debug)]
pub(super) struct Presets {
    presets: Vec<Preset>,
    /// By a line's first byte: the presets that must look at it even outside a trace, a bit for each.
    by_first: [u8; 256],
    /// The same by its last byte.
    by_last: [u8; 256],
}

impl Presets {
    pub(super) fn new(list: &[Preset]) -> Presets {
        let mut presets: Vec<Preset> = Vec::new();
        for preset in list {
            if !presets.contains(preset) {
                presets.push(*preset);
            }
        }
        let (mut by_first, mut by_last) = ([0; 256], [0; 256]);
        for (index, preset) in presets.iter().enumerate() {
            let machine = preset.machine();
            for &byte in machine.first {
                by_first[usize::from(byte)] |= 1 << index;
            }
            for &byte in machine.last {
                by_last[usize::from(byte)] |= 1 << index;
            }
        }
        Presets {
            presets,
            by_first,
            by_last,
        }
    }

    #[inline]
    pub(super) fn continues(&self, traces: &mut Traces, line: &[u8], before: &[u8]) -> bool {
        let (Some(&first), Some(&last)) = (line.first(), line.last()) else {
            return false;
        };
        let look =
            self.by_first[usize::from(first)] | self.by_last[usize::from(last)] | traces.inside;
        look != 0 && self.look(look, traces, line, before)
    }

    /// Runs the machines of the presets in `look`, a bit for each.
    fn look(&self, mut look: u8, traces: &mut Traces, line: &[u8], before: &[u8]) -> bool {
        let mut continues = false;
        while look != 0 {
            let index = look.trailing_zeros() as usize;
            look &= look - 1;
            let machine = self.presets[index].machine();
            let (goes_on, state) = machine.step(traces.states[index], line, before);
            continues |= goes_on;
            traces.states[index] = state;
            let bit = 1 << index;
            traces.inside = if state == OUTSIDE {
                traces.inside & !bit
            } else {
                traces.inside | bit
            };
        }
        continues
    }
}

impl PartialEq for Presets {
    fn eq(&self, other: &Presets) -> bool {
        self.presets == other.presets
    }
}

impl Eq for Presets {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Starts, middles and ends of lines that rules are about, and others.
    fn line() -> impl Strategy<Value = String> {
        let head = prop::sample::select(lines::HEADS);
        let middle = "[ -~]{0,6}";
        let tail = prop::sample::select(&["", "'", ")", "{", ":", "^", "}", "more", ":12"][..]);
        (head, middle, tail).prop_map(|(head, middle, tail)| format!("{head}{middle}{tail}"))
    }

    proptest! {
        #[test]
        fn the_tables_of_bytes_leave_no_rule_out(
            preset in prop::sample::select(&Preset::ALL[..]),
            lines in prop::collection::vec(line(), 1..12),
        ) {
            let presets = Presets::new(&[preset]);
            let mut traces = Traces::default();
            let mut state = OUTSIDE;
            for line in lines.iter().filter(|line| !line.is_empty()) {
                let (continues, next) = preset.machine().step(state, line.as_bytes(), b"a panic");
                state = next;
                let found = presets.continues(&mut traces, line.as_bytes(), b"a panic");
                prop_assert_eq!((found, traces.states[0]), (continues, state), "{}", line);
                prop_assert_eq!(traces.inside != 0, state != OUTSIDE);
            }
        }
    }

    #[test]
    fn states_fit_the_bits_of_a_rule() {
        for preset in Preset::ALL {
            for rule in preset.machine().rules {
                assert!(rule.to < 8 && rule.within != 0, "{preset:?}");
            }
        }
    }
}
