//! Chunk buffers that return to their pool when the last column that looks into them is dropped.
//! Takes and gives whole buffers of one size; never grows beyond what was in use at once.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tailrace_inputs::ChunkBuffer;

/// Buffers of one capacity.
#[derive(Debug)]
pub(crate) struct Pool {
    capacity: usize,
    keep: usize,
    free: Mutex<Vec<ChunkBuffer>>,
}

/// A buffer on loan.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: ChunkBuffer,
    pool: Arc<Pool>,
}

impl Pool {
    /// A pool of buffers of `capacity` bytes which keeps at most `keep` of them.
    pub(crate) fn new(capacity: usize, keep: usize) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            keep,
            free: Mutex::default(),
        })
    }

    /// An empty buffer.
    pub(crate) fn take(self: &Arc<Self>) -> Buffer {
        let free = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let bytes = free.unwrap_or_else(|| ChunkBuffer::with_capacity(self.capacity));
        Buffer {
            bytes,
            pool: Arc::clone(self),
        }
    }
}

impl Buffer {
    /// The bytes, to be filled.
    pub(crate) fn bytes_mut(&mut self) -> &mut ChunkBuffer {
        &mut self.bytes
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Shares the filled buffer; it returns to the pool with the last clone or column.
    pub(crate) fn share(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut free = self
            .pool
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if free.len() < self.pool.keep {
            free.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_returns_with_its_last_clone() {
        let pool = Pool::new(1024, 2);
        let mut buffer = pool.take();
        buffer.bytes_mut().extend_from_slice(b"abc");
        let address = buffer.bytes_mut().as_ptr();
        let shared = buffer.share();
        let view = shared.slice(1..);
        drop(shared);
        assert_eq!(&view[..], b"bc");
        assert!(pool.free.lock().expect("not poisoned").is_empty());
        drop(view);
        let mut again = pool.take();
        assert_eq!(again.bytes_mut().as_ptr(), address);
        assert_eq!(again.len(), 0);
    }
}
