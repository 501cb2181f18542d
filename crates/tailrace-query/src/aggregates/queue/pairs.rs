//! Summaries of pairs, for `corr` and covariances.

use arrow::array::ArrayRef;

use super::{Moments, Summary, Wanted, floats};

/// As [`Moments`], of both values of pairs, and the sum of the products of their distances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pairs {
    left: Moments,
    right: Moments,
    products: f64,
}

impl Summary for Pairs {
    type Value = (f64, f64);

    fn values(columns: &[ArrayRef]) -> impl Iterator<Item = (f64, f64)> {
        let pairs = floats(&columns[0]).zip(floats(&columns[1]));
        pairs.filter_map(|(left, right)| left.zip(right))
    }

    fn of((left, right): (f64, f64)) -> Pairs {
        Pairs {
            left: Moments::of(left),
            right: Moments::of(right),
            products: left * 0.0 + right * 0.0,
        }
    }

    fn with(self, other: Pairs) -> Pairs {
        let distance = |of: fn(&Pairs) -> f64| of(&other) - of(&self);
        let product = distance(|it| it.left.mean) * distance(|it| it.right.mean);
        let left = self.left.with(other.left);
        let share = other.left.count / left.count;
        Pairs {
            left,
            right: self.right.with(other.right),
            products: self.products + other.products + product * self.left.count * share,
        }
    }

    fn wanted(self, _: usize, wanted: Wanted) -> Option<f64> {
        match wanted {
            Wanted::Covariance { is_sample } => {
                let of = self.left.count - f64::from(u8::from(is_sample));
                (of > 0.0).then(|| self.products / of)
            }
            _ => {
                let (left, right) = (self.left.squares, self.right.squares);
                // One that is not a number is none of these.
                let is_constant = left == 0.0 || right == 0.0;
                let both = left * right;
                // Unless it is too large or too small, the root of the product is the more exact one.
                let root = match both.is_normal() {
                    true => both.sqrt(),
                    false => left.sqrt() * right.sqrt(),
                };
                (!is_constant).then(|| (self.products / root).clamp(-1.0, 1.0))
            }
        }
    }
}
