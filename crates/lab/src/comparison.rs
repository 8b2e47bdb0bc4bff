//! Comparisons of numbers, and their signs.

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    AtMost,
    AtLeast,
    Below,
    Above,
}

impl Comparison {
    /// Longer signs first: `<=` begins with `<`.
    pub(crate) const SIGNS: [(&str, Self); 6] = [
        ("==", Self::Equal),
        ("!=", Self::Unequal),
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("<", Self::Below),
        (">", Self::Above),
    ];

    pub(crate) fn holds(self, left: f64, right: f64) -> bool {
        let order = left.partial_cmp(&right);
        match self {
            Self::Equal => order == Some(std::cmp::Ordering::Equal),
            Self::Unequal => order.is_some_and(std::cmp::Ordering::is_ne),
            Self::AtMost => order.is_some_and(std::cmp::Ordering::is_le),
            Self::AtLeast => order.is_some_and(std::cmp::Ordering::is_ge),
            Self::Below => order.is_some_and(std::cmp::Ordering::is_lt),
            Self::Above => order.is_some_and(std::cmp::Ordering::is_gt),
        }
    }
}
