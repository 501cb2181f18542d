//! Keys that records have and no column wants, by name.
//!
//! A record has such a key only if it is walked, or has a template with the key, so that keys are looked for there and in no other
//! record. Never holds more than a bounded number of names.

use std::collections::HashSet;

use crate::config::Unwanted;
use crate::keys::{Interner, KEY_BYTES_MAX};

/// The names that were met so far.
#[derive(Debug)]
pub(crate) struct UnwantedKeys {
    names: Interner,
    except: HashSet<String>,
    keys_max: usize,
}

impl UnwantedKeys {
    /// None so far.
    pub(crate) fn new(config: &Unwanted) -> UnwantedKeys {
        UnwantedKeys {
            names: Interner::default(),
            except: config.except.iter().cloned().collect(),
            keys_max: config.keys_max,
        }
    }

    /// Whether no more names are noted.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.names.len() >= self.keys_max
    }

    /// Notes a key that no column wants.
    pub(crate) fn note(&mut self, name: &str) {
        let is_noted = self.is_full()
            || name.len() > KEY_BYTES_MAX
            || self.except.contains(name)
            || self.names.find(name).is_some();
        if !is_noted {
            self.names.insert(name);
        }
    }

    /// The names, in the order in which they were met.
    pub(crate) fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.names.len() as u32).map(|id| self.names.get(id))
    }
}
