//! What a newline search looks for besides newlines.
//!
//! For each text of one list of the prefilter it has the pair of bytes that promises to be the rarest, and it tells
//! whether a whole text stands where a pair was seen. Never searches.

use memchr::arch::all::packedpair;

/// More texts are not looked for at once.
pub(crate) const TEXTS_MAX: usize = 3;

/// Texts to look for, and escapes by which they may be spelt.
#[derive(Clone, Debug)]
pub(crate) struct Texts {
    texts: Vec<Box<[u8]>>,
    /// One of each text and, last, that of escapes.
    pairs: Vec<Pair>,
    /// Any escape, not only one by number (`\u0041`).
    any_escape: bool,
}

/// Two bytes of a text; of one that has a single byte it twice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) first: u8,
    pub(super) second: u8,
    /// Where the first one stands in the text.
    pub(super) at: usize,
    /// How far after it the second one stands.
    pub(super) behind: usize,
}

impl Texts {
    /// Texts that are not empty.
    pub(crate) fn new(texts: &[impl AsRef<[u8]>], any_escape: bool) -> Texts {
        let escape: &[u8] = if any_escape { b"\\" } else { b"\\u" };
        let all = texts.iter().map(AsRef::as_ref).chain([escape]);
        Texts {
            texts: texts.iter().map(|text| text.as_ref().into()).collect(),
            pairs: all.map(Pair::of).collect(),
            any_escape,
        }
    }

    /// One for each text and, last, that of escapes.
    pub(super) fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Whether they are few enough for one search.
    pub(crate) fn are_few(&self) -> bool {
        self.texts.len() <= TEXTS_MAX
    }

    /// Whether an escape stands at `place` of `bytes`, or a text such that the first byte of its pair stands there.
    pub(crate) fn stand_at(&self, bytes: &[u8], place: usize) -> bool {
        let byte = bytes[place];
        if byte == b'\\' && (self.any_escape || bytes.get(place + 1) == Some(&b'u')) {
            return true;
        }
        self.texts.iter().zip(&self.pairs).any(|(text, pair)| {
            let start = place.checked_sub(pair.at);
            let stands = |start: usize| bytes[start..].starts_with(text);
            byte == pair.first && start.is_some_and(stands)
        })
    }
}

impl Pair {
    fn of(text: &[u8]) -> Pair {
        let rare = packedpair::Pair::with_ranker(text, InLogs);
        let rare = rare.map_or([0, 0], |rare| [rare.index1(), rare.index2()]);
        let [one, other] = rare.map(usize::from);
        let (at, second) = (one.min(other), one.max(other));
        Pair {
            first: text[at],
            second: text[second],
            at,
            behind: second - at,
        }
    }
}

/// How common a byte is in lines of JSON.
struct InLogs;

impl packedpair::HeuristicFrequencyRank for InLogs {
    fn rank(&self, byte: u8) -> u8 {
        // The letters of English text, the commonest first.
        const LETTERS: &[u8] = b"etaoinsrhldcumfpgwybvkxjqz";
        match byte {
            b'"' | b':' | b',' | b'0'..=b'9' => 255,
            b' ' | b'{' | b'}' | b'.' | b'-' | b'_' | b'/' => 200,
            b'a'..=b'z' => {
                let place = LETTERS.iter().position(|&letter| letter == byte);
                200 - 4 * place.unwrap_or(0) as u8
            }
            b'A'..=b'Z' => 60,
            _ => 20,
        }
    }
}
