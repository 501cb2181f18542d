//! gRPC's frame around a message: one byte that says whether it is compressed, four of its length.
//!
//! Takes lengths and bytes, gives headers and messages. Never compresses, never reads a stream.

/// Length of the header before each message.
pub const GRPC_HEADER_BYTES: usize = 5;

/// The header of a message of `len` bytes, which must be below 4 GiB.
pub const fn grpc_frame_header(is_compressed: bool, len: usize) -> [u8; GRPC_HEADER_BYTES] {
    let [a, b, c, d] = (len as u32).to_be_bytes();
    [is_compressed as u8, a, b, c, d]
}

/// Splits the first frame off: whether it is compressed, its message, and what follows. `None` if
/// it is not complete or its first byte is neither 0 nor 1.
pub fn read_grpc_frame(bytes: &[u8]) -> Option<(bool, &[u8], &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<GRPC_HEADER_BYTES>()?;
    let [flag, a, b, c, d] = *header;
    let len = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
    let (message, rest) = rest.split_at_checked(len)?;
    (flag <= 1).then_some((flag == 1, message, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_one_by_one() {
        let mut bytes = grpc_frame_header(true, 3).to_vec();
        bytes.extend_from_slice(b"abc");
        bytes.extend_from_slice(&grpc_frame_header(false, 0));
        let (is_compressed, message, rest) = read_grpc_frame(&bytes).expect("a whole frame");
        assert_eq!((is_compressed, message), (true, &b"abc"[..]));
        assert_eq!(read_grpc_frame(rest), Some((false, &[][..], &[][..])));
        assert_eq!(grpc_frame_header(false, 0x0102_0304), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_part_of_a_frame_is_none() {
        for bytes in [&[][..], &[0, 0, 0, 0], &[0, 0, 0, 0, 1], &[2, 0, 0, 0, 0]] {
            assert_eq!(read_grpc_frame(bytes), None, "{bytes:?}");
        }
    }
}
