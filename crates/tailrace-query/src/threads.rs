//! The threads that plan and run queries: plans of long conditions are deep, so their stacks are large.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// Stack of the thread that plans a query, in bytes.
pub const STACK_BYTES: usize = 256 << 20;
const WORKER_STACK_BYTES: usize = 64 << 20;
/// What the threads are called in lists of threads.
pub const THREAD_NAME: &str = "tailrace-query";

/// The threads that run a query: so many, or as many as there are processors.
///
/// # Errors
///
/// They cannot be started.
pub fn runtime(threads: Option<usize>) -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder
        .enable_all()
        .thread_name(THREAD_NAME)
        .thread_stack_size(WORKER_STACK_BYTES);
    if let Some(threads) = threads {
        builder.worker_threads(threads.max(1));
    }
    builder.build()
}
