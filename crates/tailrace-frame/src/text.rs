//! Small rules about bytes that several ways through the framer share: what is blank, what ends a line, where a
//! record that is too long is cut. Functions on slices that know no envelope.

/// Memory that an idle framer keeps in one buffer; more is given back once it is no longer needed.
pub(crate) const KEPT_BYTES_MAX: usize = 64 << 10;

/// Whether a line is sure to be longer than `limit`, of which at least `limit + 2` bytes or all are known; a carriage
/// return directly after the limit may still turn out to be the line's ending.
pub(crate) fn is_overlong(text: &[u8], limit: usize) -> bool {
    text.len() > limit.saturating_add(1) || (text.len() > limit && text[limit] != b'\r')
}

/// Whether there is nothing to see.
pub(crate) fn is_blank(content: &[u8]) -> bool {
    content
        .iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// How many NULs the bytes begin with.
pub(crate) fn nuls_before(bytes: &[u8]) -> usize {
    // Blocks are compared at once: there may be gigabytes of them.
    let blocks = bytes.chunks_exact(64);
    let whole = blocks.take_while(|block| block.iter().all(|&byte| byte == 0));
    let start = 64 * whole.count();
    let rest = bytes[start..].iter().take_while(|&&byte| byte == 0);
    start + rest.count()
}

/// A line without the carriage return that may end it.
pub(crate) fn without_return(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\r").unwrap_or(text)
}

/// The length of `content` cut to at most `limit` bytes, without the start of a UTF-8 character that continues after.
pub(crate) fn cut_length(content: &[u8], limit: usize) -> usize {
    if content.len() <= limit {
        return content.len();
    }
    let is_continuation = |at: usize| content[at] & 0b1100_0000 == 0b1000_0000;
    let start = (limit.saturating_sub(3)..=limit)
        .rev()
        .find(|&at| !is_continuation(at));
    // Three continuation bytes before the limit and one at it: not UTF-8, so there is no character to keep whole.
    start.unwrap_or(limit)
}

/// An empty vector that keeps the memory, unless it is much.
pub(crate) fn emptied(mut vector: Vec<u8>) -> Vec<u8> {
    vector.clear();
    vector.shrink_to(KEPT_BYTES_MAX);
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_before_characters() {
        for (text, limit, length) in [
            ("abc", 3, 3),
            ("abc", 2, 2),
            ("aü", 2, 1),
            ("a€", 3, 1),
            ("a😀", 4, 1),
            ("a😀b", 5, 5),
            ("😀", 3, 0),
        ] {
            assert_eq!(
                cut_length(text.as_bytes(), limit),
                length,
                "{text:?} at {limit}"
            );
        }
        assert_eq!(cut_length(&[0x80; 9], 5), 5);
        assert_eq!(cut_length(&[0x80; 9], 1), 1);
    }

    #[test]
    fn nuls_are_counted_to_the_first_other_byte() {
        for nuls in [0, 1, 63, 64, 65, 128, 1000] {
            for rest in ["", "x", "x\0"] {
                let bytes = [&vec![0; nuls], rest.as_bytes()].concat();
                assert_eq!(nuls_before(&bytes), nuls);
            }
        }
    }

    #[test]
    fn a_return_behind_the_limit_may_be_the_ending() {
        for (text, overlong) in [
            ("", false),
            ("abc", false),
            ("abc\r", false),
            ("abcd", true),
            ("abc\rd", true),
        ] {
            assert_eq!(is_overlong(text.as_bytes(), 3), overlong, "{text:?}");
        }
    }
}
