//! Comparing and hashing bytes of a request, in words.

const FACTOR: u64 = 0x9e37_79b1_85eb_ca87;
const FACTOR_2: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// The eight bytes that start there, which must be in `bytes`.
#[inline(always)]
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes[at..].first_chunk();
    u64::from_le_bytes(*word.expect("eight bytes are there"))
}

/// A hash of eight bytes; its high bits are the good ones.
#[inline(always)]
pub(crate) fn hash_word(word: u64) -> u64 {
    word.wrapping_mul(FACTOR_2)
}

/// A hash of `bytes[start..end]`; its high bits are the good ones. At least 16 bytes are before `end`.
#[inline(always)]
pub(crate) fn hash(bytes: &[u8], start: usize, end: usize) -> u64 {
    let len = end - start;
    let last = word(bytes, end - 8);
    if len < 8 {
        // Without the bytes before them.
        let last = if len == 0 { 0 } else { last >> (64 - 8 * len) };
        return (last ^ (len as u64) << 57).wrapping_mul(FACTOR);
    }
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let mut hash = len as u64;
    // The last 16 bytes, or the first and the last eight, are hashed behind the loop.
    let mut chunks = bytes[start..end - 1].chunks_exact(16);
    for chunk in &mut chunks {
        hash = mix(hash, word(chunk, 0)) ^ word(chunk, 8);
        hash = hash.wrapping_mul(FACTOR_2).rotate_left(31);
    }
    let first = if len < 16 { start } else { end - 16 };
    (mix(hash, word(bytes, first)) ^ last).wrapping_mul(FACTOR_2)
}

/// How many bytes are equal from `old` and from `new` on; `old` is less than `new`. Of the last bytes there are, up to
/// 15 are not compared.
#[inline(always)]
pub(crate) fn equal(bytes: &[u8], old: usize, new: usize) -> usize {
    let olds = bytes[old..].as_chunks::<16>().0;
    let news = bytes[new..].as_chunks::<16>().0;
    let mut count = 0;
    for (old, new) in olds.iter().zip(news) {
        let differ = u128::from_le_bytes(*old) ^ u128::from_le_bytes(*new);
        if differ != 0 {
            return count + (differ.trailing_zeros() / 8) as usize;
        }
        count += 16;
    }
    count
}

/// How many bytes are equal before `old` and before `new`, at most `max`. There are `max` bytes and seven more before
/// `old`.
#[inline(always)]
pub(crate) fn equal_before(bytes: &[u8], old: usize, new: usize, max: usize) -> usize {
    let mut count = 0;
    while count < max {
        let differ = word(bytes, old - count - 8) ^ word(bytes, new - count - 8);
        if differ != 0 {
            count += (differ.leading_zeros() / 8) as usize;
            break;
        }
        count += 8;
    }
    count.min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_counts_what_a_loop_counts() {
        let mut bytes: Vec<u8> = (0..64).chain(0..64).chain(0..64).collect();
        for at in 0..=128 {
            let (old, new) = (at.min(64), 64 + at.min(64));
            let naive = (0..).take_while(|&n| bytes.get(new + n) == bytes.get(old + n));
            let naive = naive.take(bytes.len() - new).count();
            let count = equal(&bytes, old, new);
            assert!(
                count <= naive && naive - count < 16,
                "{at}: {count} {naive}"
            );
            bytes[70 + at / 3] ^= 1;
            let naive = (0..40).take_while(|&n| bytes[63 - n] == bytes[127 - n]);
            assert_eq!(equal_before(&bytes, 64, 128, 40), naive.count());
            bytes[70 + at / 3] ^= 1;
        }
    }

    #[test]
    fn the_hash_is_of_the_range_alone() {
        let bytes: Vec<u8> = (0..200).map(|at: u8| at.wrapping_mul(37)).collect();
        for len in 0..100 {
            let mut moved = vec![7; 31];
            moved.extend_from_slice(&bytes[20..20 + len]);
            moved.extend_from_slice(&[9; 20]);
            let expected = hash(&bytes, 20, 20 + len);
            assert_eq!(hash(&moved, 31, 31 + len), expected);
            for at in 31..31 + len {
                moved[at] ^= 0x10;
                assert_ne!(hash(&moved, 31, 31 + len), expected, "{len} {at}");
                moved[at] ^= 0x10;
            }
        }
    }
}
