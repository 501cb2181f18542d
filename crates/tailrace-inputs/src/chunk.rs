//! The buffer that an input reads into.
//!
//! Takes bytes at its end, gives those it holds. Used again it keeps its memory as it is, so that a read never pays for
//! zeros that it overwrites. Never shrinks.

/// A buffer to read into.
#[derive(Clone, Debug, Default)]
pub struct ChunkBuffer {
    /// Whatever was written at any time; the first `len` bytes count.
    bytes: Vec<u8>,
    len: usize,
}

impl ChunkBuffer {
    /// An empty buffer with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> ChunkBuffer {
        ChunkBuffer {
            bytes: Vec::with_capacity(bytes),
            len: 0,
        }
    }

    /// How many bytes it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets all bytes.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The next `bytes` bytes, whatever they are, to be written.
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        let end = self.len + bytes;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        &mut self.bytes[self.len..end]
    }

    /// Adds the first `bytes` bytes of the room.
    ///
    /// # Panics
    /// If there never was so much room.
    pub fn fill(&mut self, bytes: usize) {
        assert!(
            self.len + bytes <= self.bytes.len(),
            "filled beyond its room"
        );
        self.len += bytes;
    }

    /// Adds a copy of bytes.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.fill(bytes.len());
    }
}

impl std::ops::Deref for ChunkBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_before_does_not_count() {
        let mut buffer = ChunkBuffer::with_capacity(8);
        buffer.extend_from_slice(b"abc");
        buffer.clear();
        assert!(buffer.is_empty());
        buffer.room(4)[0] = b'x';
        buffer.fill(2);
        assert_eq!((buffer.len(), &buffer[..]), (2, &b"xb"[..]));
    }
}
