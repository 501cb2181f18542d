//! What operators may keep in memory.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    FairSpillPool, GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
    TrackConsumersPool,
};

/// Consumers of memory that an error names.
const CONSUMERS_NAMED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4);
/// What the rows that pass a join need for each thread, at most: some batches, each of which counts with the chunks that its texts
/// are views of.
const FOR_ROWS_BYTES: usize = 16 << 20;
/// How DataFusion calls what a hash join keeps of one side.
const SIDE_OF_JOIN: &str = "HashJoinInput";

/// A pool of bytes in which what can be kept on disk leaves room for what cannot.
pub(super) fn fair(bytes: usize) -> Arc<dyn MemoryPool> {
    Arc::new(TrackConsumersPool::new(
        FairSpillPool::new(bytes),
        CONSUMERS_NAMED,
    ))
}

/// A pool of bytes for so many threads that keep nothing on disk.
pub(super) fn in_memory(bytes: usize, threads: usize) -> Arc<dyn MemoryPool> {
    let pool = InMemory {
        pool: GreedyMemoryPool::new(bytes),
        for_sides: (bytes / 4 * 3)
            .min(bytes.saturating_sub(FOR_ROWS_BYTES.saturating_mul(threads)))
            .max(bytes / 4),
    };
    Arc::new(TrackConsumersPool::new(pool, CONSUMERS_NAMED))
}

/// A pool of which the sides of joins leave a part for the rows that pass them: a join that does not fit ends before it has given a
/// row, when it can still begin again.
#[derive(Debug)]
struct InMemory {
    pool: GreedyMemoryPool,
    for_sides: usize,
}

impl fmt::Display for InMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}

impl MemoryPool for InMemory {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let name = reservation.consumer().name();
        if name.starts_with(SIDE_OF_JOIN) && self.reserved() + additional > self.for_sides {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "one side of a join needs more than the {} bytes that it may have",
                self.for_sides
            )));
        }
        self.pool.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a consumer of this name gets so many MiB of a pool of 100 MiB for one thread.
    fn gets(name: &str, mebibytes: usize) -> bool {
        let pool = in_memory(100 << 20, 1);
        let reservation = MemoryConsumer::new(name).register(&pool);
        reservation.try_grow(mebibytes << 20).is_ok()
    }

    #[test]
    fn sides_of_joins_leave_room_for_rows() {
        // As DataFusion calls them, by partition or all in one.
        for side in ["HashJoinInput", "HashJoinInput[1]"] {
            assert!(gets(side, 75), "{side}");
            assert!(!gets(side, 76), "{side}");
        }
        assert!(gets("RepartitionExec[0]", 100));
        assert!(!gets("RepartitionExec[0]", 101));
    }
}
