//! The keys of an object that is being written.
//!
//! It decides for each key, in the order of the text, whether it is new. A few keys without escapes are compared in place,
//! and only with similar ones; others go to [`Keys`]. The first of equal keys is never dropped.

use super::walk::{Quoted, Walk};
use crate::keys::{Keys, Object, Span};

/// The keys of one object.
pub(super) struct Names {
    /// Where the object's keys start among those of all open objects.
    first: usize,
    /// A bit for how a key looks.
    seen: u64,
    /// All its keys, if they are many or one was escaped.
    kept: Option<Object>,
}

/// Where the keys of all open objects stand in the text.
pub(crate) type Places = Vec<(u32, u32)>;

/// A key.
pub(super) enum Name {
    /// As it stands in the text.
    Plain(Quoted),
    Kept(Span),
}

/// So many keys are compared where they stand.
const COMPARED_MAX: usize = 16;

impl Names {
    pub(super) fn start(places: &Places) -> Names {
        Names {
            first: places.len(),
            seen: 0,
            kept: None,
        }
    }

    pub(super) fn end(self, places: &mut Places, keys: &mut Keys) {
        places.truncate(self.first);
        if let Some(object) = self.kept {
            keys.close(object);
        }
    }

    /// Adds a key, or gives nothing if the object has it already.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        walk: &Walk<'_>,
        key: Quoted,
        places: &mut Places,
        keys: &mut Keys,
    ) -> Option<Name> {
        let is_few = places.len() - self.first < COMPARED_MAX;
        if self.kept.is_some() || key.escaped || !is_few {
            return self.keep(walk, key, places, keys);
        }
        let text = walk.between(key.start, key.end);
        let bit = 1 << looks(text);
        // Texts are below 4 GiB.
        let place = (key.start as u32, key.end as u32);
        if self.seen & bit != 0 {
            let mut known = places[self.first..].iter();
            if known.any(|(start, end)| walk.between(*start as usize, *end as usize) == text) {
                return None;
            }
        }
        self.seen |= bit;
        places.push(place);
        Some(Name::Plain(key))
    }

    #[inline(never)]
    fn keep(
        &mut self,
        walk: &Walk<'_>,
        key: Quoted,
        places: &mut Places,
        keys: &mut Keys,
    ) -> Option<Name> {
        let object = *self.kept.get_or_insert_with(|| {
            let object = keys.open();
            for (start, end) in &places[self.first..] {
                keys.insert_text(object, walk.between(*start as usize, *end as usize));
            }
            object
        });
        let text = walk.between(key.start, key.end);
        let span = if key.escaped {
            keys.insert_escaped(object, text)
        } else {
            keys.insert_text(object, text)
        };
        span.map(Name::Kept)
    }
}

impl Name {
    /// The key: the first so many bytes.
    #[inline(always)]
    pub(super) fn of<'k>(&self, walk: &Walk<'k>, keys: &'k Keys) -> (&'k [u8], usize) {
        match self {
            Name::Plain(key) => (walk.from(key.start), key.end - key.start),
            Name::Kept(span) => {
                let key = keys.key(*span);
                (key, key.len())
            }
        }
    }
}

/// A number below 64, equal for equal keys.
#[inline]
fn looks(key: &[u8]) -> u32 {
    match key {
        [] => 0,
        [first, ..] => {
            let last = key[key.len() - 1];
            (u32::from(*first) * 3 + u32::from(last) + key.len() as u32 * 8) % 64
        }
    }
}
