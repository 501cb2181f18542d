//! Whether a query with conditions is worth two phases: few records must pass.
//!
//! Decides by how many records of each batch were kept. Known in both ways of running, so that it can change
//! either way. Pure: the same batches give the same answers.

/// The share of records that were kept lately.
#[derive(Debug)]
pub struct KeptShare {
    /// Sums in which old batches count less.
    records: u64,
    kept: u64,
    low: bool,
}

/// Beyond so many records in the sums both are halved.
const WINDOW_RECORDS: u64 = 65_536;
/// A record that is kept costs more in two phases than in one, a dropped one less: where 55 to 60 of 100 are kept, both ways
/// cost the same (docs/performance.md). Between the two bounds nothing changes.
const HIGH_PERCENT: u64 = 60;
const LOW_PERCENT: u64 = 50;

impl Default for KeptShare {
    fn default() -> Self {
        Self::new()
    }
}

impl KeptShare {
    /// Nothing is known yet: who writes a condition mostly wants few.
    pub fn new() -> Self {
        Self {
            records: 0,
            kept: 0,
            low: true,
        }
    }

    /// Whether few records are kept.
    pub fn is_low(&self) -> bool {
        self.low
    }

    /// Notes one batch.
    pub fn note(&mut self, kept: usize, records: usize) {
        self.records += records as u64;
        self.kept += kept as u64;
        let bound = if self.low { HIGH_PERCENT } else { LOW_PERCENT };
        self.low = self.kept * 100 <= self.records * bound;
        while self.records > WINDOW_RECORDS {
            self.records /= 2;
            self.kept /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes batches of 10,000 records until the answer is `low`; gives how many it took.
    fn until(share: &mut KeptShare, low: bool, kept: usize) -> usize {
        (0..)
            .find(|_| {
                let found = share.is_low() == low;
                share.note(kept, 10_000);
                found
            })
            .expect("the answer changes")
    }

    #[test]
    fn it_follows_the_batches() {
        let mut share = KeptShare::new();
        assert!(share.is_low());
        share.note(0, 0);
        assert!(share.is_low());
        // The first batch may be all that is known.
        share.note(100, 100);
        assert!(!share.is_low());
        // After ten million records that were kept, a few batches still tell.
        (0..1000).for_each(|_| share.note(10_000, 10_000));
        let batches = until(&mut share, true, 0);
        assert!((2..8).contains(&batches), "{batches}");
        (0..1000).for_each(|_| share.note(0, 10_000));
        let batches = until(&mut share, false, 10_000);
        assert!((4..20).contains(&batches), "{batches}");
    }

    #[test]
    fn between_the_bounds_it_stays() {
        for low in [true, false] {
            let mut share = KeptShare::new();
            (0..100).for_each(|_| share.note(if low { 0 } else { 10_000 }, 10_000));
            (0..100).for_each(|_| share.note(5_500, 10_000));
            assert_eq!(share.is_low(), low);
        }
        let mut share = KeptShare::new();
        (0..100).for_each(|_| share.note(6_100, 10_000));
        assert!(!share.is_low());
        (0..100).for_each(|_| share.note(4_900, 10_000));
        assert!(share.is_low());
    }

    #[test]
    fn huge_batches_do_not_overflow() {
        let mut share = KeptShare::new();
        (0..100).for_each(|_| share.note(u32::MAX as usize, u32::MAX as usize));
        assert!(!share.is_low());
    }
}
