//! Globs as a walk: which directories can hold a match, and which names in them match.
//!
//! Takes include and exclude globs, gives states: "in this directory, part 3 of pattern 1 is next".
//! Never touches the disk, so that the walk in `discover` and the answer for a single path agree by
//! construction.
//!
//! A pattern is made absolute and cut at `/`. A part is a literal name, a wildcard for one name, or
//! `**` for any number of directories. Wildcards are globset's: `*`, `?`, `[a-z]`, `{a,b}`; a `/`
//! inside braces is refused. Names beginning with a dot match `*` like any other.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use globset::{GlobSet, GlobSetBuilder};
use tailrace_schema::glob;

use crate::error::Kind;

/// As much of a glob is shown in an error.
const SHOWN_CHARS: usize = 200;

/// The globs of one input.
pub(crate) struct Patterns {
    patterns: Vec<Pattern>,
    exclude: GlobSet,
}

/// A place in one pattern: part `part` of pattern `pattern` has to match the next name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct State {
    pub(crate) pattern: u16,
    part: u16,
}

struct Pattern {
    text: String,
    parts: Vec<Part>,
}

enum Part {
    Name(OsString),
    Wild(GlobSet),
    Any,
}

impl Patterns {
    pub(crate) fn new(include: &[String], exclude: &[String], base: &Path) -> Result<Self, Kind> {
        if include.is_empty() {
            return Err(Kind::NoInclude);
        }
        let patterns = include
            .iter()
            .map(|glob| Pattern::new(glob, base))
            .collect::<Result<_, _>>()?;
        let mut set = GlobSetBuilder::new();
        for glob in exclude {
            let parsed = glob::parse(&absolute_exclude(glob, base), true);
            set.add(parsed.map_err(|problem| refused(glob, &problem))?);
        }
        let exclude = set.build().map_err(|_| Kind::GlobsTogether)?;
        Ok(Self { patterns, exclude })
    }

    /// The states at `/`.
    pub(crate) fn start(&self) -> Vec<State> {
        let mut states = Vec::new();
        for pattern in 0..self.patterns.len() {
            self.push(
                State {
                    pattern: u16::try_from(pattern).unwrap_or(u16::MAX),
                    part: 0,
                },
                &mut states,
            );
        }
        states
    }

    /// The states in the directory `name` below a directory in `states`. Links to directories are
    /// followed only where the pattern has a part for them, never by `**`: a loop could not end.
    pub(crate) fn enter(&self, states: &[State], name: &OsStr, is_link: bool) -> Vec<State> {
        let mut inner = Vec::new();
        for &state in states {
            match self.part(state) {
                Part::Any if !is_link => self.push(state, &mut inner),
                Part::Any => {}
                part if !self.is_last(state) && part.matches(name) => {
                    self.push(
                        State {
                            part: state.part + 1,
                            ..state
                        },
                        &mut inner,
                    );
                }
                _ => {}
            }
        }
        inner
    }

    /// The state in which a file `name` in a directory in `states` matches.
    pub(crate) fn file(&self, states: &[State], name: &OsStr) -> Option<State> {
        states
            .iter()
            .copied()
            .find(|&state| self.is_last(state) && self.part(state).matches(name))
    }

    /// The one name a state waits for, if it is a literal, and whether that is a file.
    pub(crate) fn literal(&self, state: State) -> Option<(&OsStr, bool)> {
        match self.part(state) {
            Part::Name(name) => Some((name, self.is_last(state))),
            _ => None,
        }
    }

    /// Whether the state is a trailing `**`, which takes files and not directories.
    pub(crate) fn is_any(&self, state: State) -> bool {
        matches!(self.part(state), Part::Any)
    }

    /// Whether a file or directory of this absolute path is left out, by itself or with a directory above it.
    pub(crate) fn excluded(&self, path: &Path) -> bool {
        !self.exclude.is_empty() && path.ancestors().any(|path| self.exclude.is_match(path))
    }

    /// Whether a file of this absolute path belongs to the input.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return false;
        };
        let states = self.states_in(parent);
        self.file(&states, name).is_some() && !self.excluded(path)
    }

    /// Whether one of the globs names this absolute path, or would if no other did.
    pub(crate) fn names(&self, pattern: usize, path: &Path) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return false;
        };
        let mut states = Vec::new();
        let pattern = u16::try_from(pattern).unwrap_or(u16::MAX);
        self.push(State { pattern, part: 0 }, &mut states);
        self.file(&self.states_below(states, parent), name)
            .is_some()
    }

    /// Whether files of this absolute directory can belong to the input.
    pub(crate) fn lead_into(&self, dir: &Path) -> bool {
        let states = self.states_in(dir);
        states.iter().any(|&state| self.is_last(state))
    }

    fn states_in(&self, dir: &Path) -> Vec<State> {
        self.states_below(self.start(), dir)
    }

    fn states_below(&self, mut states: Vec<State>, dir: &Path) -> Vec<State> {
        for component in dir.components() {
            if let Component::Normal(name) = component {
                states = self.enter(&states, name, false);
            }
        }
        states
    }

    /// The globs as written, in the order of `State::pattern`.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().map(|pattern| pattern.text.as_str())
    }

    /// The longest directory of a pattern that holds no wildcard.
    pub(crate) fn fixed_dir(&self, pattern: usize) -> PathBuf {
        let parts = &self.patterns[pattern].parts;
        let mut dir = PathBuf::from("/");
        for part in &parts[..parts.len() - 1] {
            match part {
                Part::Name(name) => dir.push(name),
                _ => break,
            }
        }
        dir
    }

    fn push(&self, state: State, states: &mut Vec<State>) {
        if states.contains(&state) {
            return;
        }
        states.push(state);
        if matches!(self.part(state), Part::Any) && !self.is_last(state) {
            self.push(
                State {
                    part: state.part + 1,
                    ..state
                },
                states,
            );
        }
    }

    fn part(&self, state: State) -> &Part {
        &self.patterns[usize::from(state.pattern)].parts[usize::from(state.part)]
    }

    fn is_last(&self, state: State) -> bool {
        usize::from(state.part) + 1 == self.patterns[usize::from(state.pattern)].parts.len()
    }
}

impl Pattern {
    fn new(glob: &str, base: &Path) -> Result<Self, Kind> {
        let shape = |why| Kind::GlobShape {
            glob: glob.to_owned(),
            why,
        };
        let mut parts = Vec::new();
        if !glob.starts_with('/') {
            for component in base.components() {
                if let Component::Normal(name) = component {
                    parts.push(Part::Name(name.to_owned()));
                }
            }
        }
        if glob.is_empty() || glob.ends_with('/') {
            return Err(shape("names no file; end it with a file name or `*`"));
        }
        for text in glob.split('/') {
            match text {
                "" | "." => {}
                ".." => {
                    if !matches!(parts.pop(), Some(Part::Name(_))) {
                        return Err(shape(
                            "has `..` behind a wildcard; write the path without it",
                        ));
                    }
                }
                "**" => {
                    if !matches!(parts.last(), Some(Part::Any)) {
                        parts.push(Part::Any);
                    }
                }
                text if !text.contains(['*', '?', '[', ']', '{', '}', '\\']) => {
                    parts.push(Part::Name(text.into()));
                }
                text if text.matches('{').count() != text.matches('}').count() => {
                    return Err(shape("has a `/` inside braces; write one glob for each"));
                }
                text => {
                    let wild =
                        glob::compile(text, true).map_err(|problem| refused(glob, &problem))?;
                    parts.push(Part::Wild(wild));
                }
            }
        }
        if parts.is_empty() || parts.len() > usize::from(u16::MAX) {
            return Err(shape("names no file; end it with a file name or `*`"));
        }
        Ok(Self {
            text: glob.to_owned(),
            parts,
        })
    }
}

impl Part {
    fn matches(&self, name: &OsStr) -> bool {
        match self {
            Self::Name(literal) => literal == name,
            Self::Wild(wild) => wild.is_match(Path::new(name)),
            Self::Any => true,
        }
    }
}

fn refused(glob: &str, problem: &glob::Problem) -> Kind {
    let reason = problem.to_string();
    let glob = match glob.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &glob[..end]),
        None => glob.to_owned(),
    };
    Kind::Glob { glob, reason }
}

/// An exclude without a `/` is about names anywhere; another relative one starts at `base`.
fn absolute_exclude(glob: &str, base: &Path) -> String {
    if glob.starts_with('/') {
        glob.to_owned()
    } else if !glob.contains('/') {
        format!("**/{glob}")
    } else {
        let glob = glob.strip_prefix("./").unwrap_or(glob);
        format!("{}/{glob}", globset::escape(&base.to_string_lossy()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    fn check(include: &[&str], exclude: &[&str], yes: &[&str], no: &[&str]) {
        let own = |globs: &[&str]| globs.iter().map(|&g| g.to_owned()).collect::<Vec<_>>();
        let patterns = Patterns::new(&own(include), &own(exclude), Path::new("/base")).unwrap();
        for path in yes {
            assert!(patterns.matches(Path::new(path)), "{include:?} {path}");
        }
        for path in no {
            assert!(!patterns.matches(Path::new(path)), "{include:?} {path}");
        }
    }

    #[test]
    fn globs_match_whole_paths() {
        check(
            &["/a/b.log"],
            &[],
            &["/a/b.log"],
            &["/a/b.log.1", "/a", "/a/b.log/c"],
        );
        check(
            &["/a/*.log"],
            &[],
            &["/a/x.log", "/a/.log"],
            &["/a/b/x.log", "/x.log"],
        );
        check(
            &["/a/**/*.log"],
            &[],
            &["/a/x.log", "/a/b/x.log", "/a/b/c/x.log"],
            &["/b/x.log", "/a/x.txt"],
        );
        check(&["/a/**"], &[], &["/a/x", "/a/b/c"], &["/b"]);
        check(&["/**/x"], &[], &["/x", "/a/b/x"], &["/a/b"]);
        check(
            &["/a/{b,c}/?.l[oi]g"],
            &[],
            &["/a/b/1.log", "/a/c/2.lig"],
            &["/a/d/1.log"],
        );
        check(&["/a/*/*/c.log"], &[], &["/a/1/2/c.log"], &["/a/1/c.log"]);
        check(&["/a/\\*.log"], &[], &["/a/*.log"], &["/a/b.log"]);
        check(
            &["./x/../*.log", "y//z"],
            &[],
            &["/base/q.log", "/base/y/z"],
            &["/base/x/q.log"],
        );
    }

    #[test]
    fn excludes_are_names_or_paths() {
        check(&["/a/**"], &["*.gz"], &["/a/x"], &["/a/x.gz", "/a/b/x.gz"]);
        check(&["/a/**"], &["/a/b/**"], &["/a/x"], &["/a/b/x", "/a/b/c/d"]);
        check(&["x/*"], &["x/y"], &["/base/x/z"], &["/base/x/y"]);
    }

    #[test]
    fn names_need_not_be_utf8() {
        let patterns = Patterns::new(&["/a/*.log".to_owned()], &[], Path::new("/")).unwrap();
        let path = Path::new(OsStr::from_bytes(b"/a/\xff\xfe.log"));
        assert!(patterns.matches(path));
    }

    #[test]
    fn globs_that_cannot_be_compiled_are_refused() {
        let nested = format!("/a/{}b{}", "{a,".repeat(125), "}".repeat(125));
        let any = || vec!["/a/*".to_owned()];
        let long = format!("/a/{}", "?".repeat(1_000_000));
        for glob in [nested, long] {
            let glob = vec![glob];
            let included = Patterns::new(&glob, &[], Path::new("/"));
            let excluded = Patterns::new(&any(), &glob, Path::new("/"));
            for result in [included, excluded] {
                let text = result.err().unwrap().to_string();
                assert!(text.contains("more than") && text.len() < 500, "{text}");
            }
        }
        let many = vec!["?".repeat(60_000); 10];
        let error = Patterns::new(&any(), &many, Path::new("/")).err().unwrap();
        assert!(error.to_string().contains("`exclude`"), "{error}");
    }

    #[test]
    fn bad_globs_are_refused_with_a_reason() {
        for glob in ["", "/", "/a/", "/a/{b/c,d}", "/a/[b", "/a/*/../c"] {
            let result = Patterns::new(&[glob.to_owned()], &[], Path::new("/"));
            let kind = result.err().unwrap_or_else(|| panic!("{glob}"));
            assert!(kind.to_string().contains(&format!("`{glob}`")), "{kind}");
        }
        assert!(Patterns::new(&[], &[], Path::new("/")).is_err());
    }
}
