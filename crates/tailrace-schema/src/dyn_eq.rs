//! Comparing options whose type is known to a registry alone.

use std::any::Any;

/// Values that can be compared without knowing their type; those of different types are not equal. Whatever is
/// `PartialEq` can.
pub trait DynEq {
    /// Whether the other one has the same type and is equal.
    fn is_equal(&self, other: &dyn Any) -> bool;
}

impl<T: PartialEq + 'static> DynEq for T {
    fn is_equal(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_and_value_count() {
        assert!(1u8.is_equal(&1u8));
        assert!(!1u8.is_equal(&2u8));
        assert!(!1u8.is_equal(&1u16));
    }
}
