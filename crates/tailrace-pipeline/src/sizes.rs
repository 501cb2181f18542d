//! What the machine affords the agent.

/// What the machine affords.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Threads that frame, scan, transform and encode.
    pub workers: usize,
    /// Bytes that all pipelines together may have in flight.
    pub queue_bytes: u64,
}
