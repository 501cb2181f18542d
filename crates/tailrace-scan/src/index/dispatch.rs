//! Which index runs: chosen once, when a scanner is made.
//!
//! Takes the wish of the caller, asks the machine, gives a value that indexes. Never asks again per record.

use super::scalar::Scalar;
use super::{Index, build};
use crate::config::Isa;

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;

/// The chosen index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Indexer(Choice);

#[derive(Clone, Copy, Debug)]
enum Choice {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
}

impl Indexer {
    /// The one that `isa` names, or the best there is where the machine lacks it.
    pub(crate) fn new(isa: Isa) -> Indexer {
        #[cfg(target_arch = "x86_64")]
        if isa != Isa::Scalar
            && let Some(avx2) = Avx2::new()
        {
            return Indexer(Choice::Avx2(avx2));
        }
        let _ = isa;
        Indexer(Choice::Scalar(Scalar))
    }

    /// Indexes the record that is the first `len` bytes of `reach`; `reach` ends where the buffer ends.
    #[inline]
    pub(crate) fn index(self, reach: &[u8], len: usize, index: &mut Index) {
        match self.0 {
            Choice::Scalar(scalar) => build(scalar, reach, len, index),
            #[cfg(target_arch = "x86_64")]
            Choice::Avx2(avx2) => avx2.build(reach, len, index),
        }
    }

    /// Whether this is the plain Rust one.
    #[cfg(test)]
    pub(crate) fn is_scalar(self) -> bool {
        matches!(self.0, Choice::Scalar(_))
    }
}
