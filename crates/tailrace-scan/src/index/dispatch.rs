//! Which index runs: chosen once, when a scanner is made.
//!
//! Asks the machine what it has, and gives the best index that the caller allows. Never asks again per record.

use super::build::{Index, build};
use super::probe::{Probe, Task};
use super::scalar::Scalar;
use crate::config::Isa;
use crate::text::Span;

#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};

#[cfg(target_arch = "aarch64")]
use super::neon::Neon;

impl Probe for Scalar {}

/// The chosen index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Indexer(Choice);

#[derive(Clone, Copy, Debug)]
enum Choice {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512, Avx2),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl Indexer {
    /// The one that `isa` names, or the best below it that the machine has.
    pub(crate) fn new(isa: Isa) -> Indexer {
        #[cfg(target_arch = "x86_64")]
        {
            // CPUs of before VBMI2 slow down for a while, in all they do, whenever they meet vectors of 512 bits.
            let is_wanted = match isa {
                Isa::Auto => is_x86_feature_detected!("avx512vbmi2"),
                _ => isa == Isa::Avx512,
            };
            if isa != Isa::Scalar
                && let Some(avx2) = Avx2::new()
            {
                let avx512 = is_wanted.then(Avx512::new).flatten();
                return Indexer(avx512.map_or(Choice::Avx2(avx2), |it| Choice::Avx512(it, avx2)));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if isa != Isa::Scalar {
            return Indexer(Choice::Neon(Neon));
        }
        let _ = isa;
        Indexer(Choice::Scalar(Scalar))
    }

    /// Adds records whose spans ascend and do not overlap; all of them lie in `buffer`.
    #[inline]
    pub(crate) fn index(self, buffer: &[u8], spans: &[Span], index: &mut Index) {
        match self.0 {
            Choice::Scalar(scalar) => build(scalar, buffer, spans, index),
            #[cfg(target_arch = "x86_64")]
            Choice::Avx2(avx2) => avx2.build(buffer, spans, index),
            #[cfg(target_arch = "x86_64")]
            Choice::Avx512(avx512, _) => avx512.build(buffer, spans, index),
            #[cfg(target_arch = "aarch64")]
            Choice::Neon(neon) => build(neon, buffer, spans, index),
        }
    }

    /// Does a task with the best probe there is.
    #[inline]
    pub(crate) fn run<T: Task>(self, task: T) -> T::Output {
        match self.0 {
            Choice::Scalar(scalar) => task.run(scalar),
            // What is looked at is rarely longer than 32 bytes.
            #[cfg(target_arch = "x86_64")]
            Choice::Avx2(avx2) | Choice::Avx512(_, avx2) => avx2.run(task),
            #[cfg(target_arch = "aarch64")]
            Choice::Neon(neon) => task.run(neon),
        }
    }

    /// Whether this is the plain Rust one.
    #[cfg(test)]
    pub(crate) fn is_scalar(self) -> bool {
        matches!(self.0, Choice::Scalar(_))
    }
}
