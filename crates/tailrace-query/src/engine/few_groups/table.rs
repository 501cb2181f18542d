//! Small tables of numbers by key.

/// What a number is found by.
pub(super) trait Key: Copy + Default + Eq {
    /// Of which the highest bits are a place.
    fn hash(self) -> u64;
}

/// The golden ratio: it spreads keys that follow each other.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Key for u64 {
    #[inline(always)]
    fn hash(self) -> u64 {
        // The lower half takes part in the place more than once.
        (self ^ self >> 32).wrapping_mul(SPREAD)
    }
}

impl Key for u128 {
    #[inline(always)]
    fn hash(self) -> u64 {
        let high = ((self >> 64) as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        (self as u64 ^ high.rotate_left(32)).wrapping_mul(SPREAD)
    }
}

/// Numbers by key.
pub(super) struct Table<K> {
    slots: Vec<(K, u32)>,
    /// What of a hash is not a place.
    shift: u32,
    len: usize,
}

/// No number.
const EMPTY: u32 = u32::MAX;
/// So far from its place is a key at most. With half of the slots empty, more is hostile.
const STEPS_MAX: usize = 64;

impl<K: Key> Table<K> {
    pub(super) fn new() -> Table<K> {
        const BITS: u32 = 6;
        Table {
            slots: vec![(K::default(), EMPTY); 1 << BITS],
            shift: u64::BITS - BITS,
            len: 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.slots.as_slice())
    }

    #[inline(always)]
    pub(super) fn find(&self, key: K) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let first = (key.hash() >> self.shift) as usize & mask;
        let (known, number) = self.slots[first];
        if known == key && number != EMPTY {
            return Some(number);
        }
        self.find_behind(key, first)
    }

    #[inline(never)]
    fn find_behind(&self, key: K, first: usize) -> Option<u32> {
        let places = (first..first + STEPS_MAX).map(|at| self.slots[at & (self.slots.len() - 1)]);
        let mut taken = places.take_while(|(_, number)| *number != EMPTY);
        taken.find(|(known, _)| *known == key).map(|it| it.1)
    }

    /// False if too many keys have the same place.
    pub(super) fn insert(&mut self, key: K, number: u32) -> bool {
        if self.len * 2 >= self.slots.len() {
            let slots = vec![(K::default(), EMPTY); self.slots.len() * 2];
            let known = std::mem::replace(&mut self.slots, slots);
            (self.shift, self.len) = (self.shift - 1, 0);
            let mut known = known.into_iter().filter(|(_, number)| *number != EMPTY);
            if !known.all(|(key, number)| self.insert(key, number)) {
                return false;
            }
        }
        let (first, mask) = ((key.hash() >> self.shift) as usize, self.slots.len() - 1);
        let mut places = (first..first + STEPS_MAX).map(|at| at & mask);
        let Some(at) = places.find(|at| self.slots[*at].1 == EMPTY) else {
            return false;
        };
        self.slots[at] = (key, number);
        self.len += 1;
        true
    }
}
