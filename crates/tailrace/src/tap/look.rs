//! How words look that `tap` prints for people.

use std::fmt::Display;

/// What went as it should.
pub(super) fn good<T: Display>(text: T) -> T {
    text
}

/// An error.
pub(super) fn bad<T: Display>(text: T) -> T {
    text
}

/// A warning.
pub(super) fn warn<T: Display>(text: T) -> T {
    text
}

/// What matters less than the rest.
pub(super) fn dim<T: Display>(text: T) -> T {
    text
}

/// A name, a hint.
pub(super) fn accent<T: Display>(text: T) -> T {
    text
}
