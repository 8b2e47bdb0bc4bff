//! Numeric functions from + − × ÷ and sqrt alone: those are correctly rounded everywhere, the library's `cbrt` and `powf` are
//! not.

use anabranch_units::Span;

/// The lesser of two numbers, neither of which is NaN; faster than `f64::min`, which handles NaN.
pub(crate) fn lesser(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}

/// The greater of two numbers, neither of which is NaN.
pub(crate) fn greater(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

/// A span in seconds. The conversion of signed numbers is four instructions shorter, and no span exceeds the 292 years of 2^63 ns.
pub(crate) fn seconds(span: Span) -> f64 {
    span.ticks().cast_signed() as f64 / Span::from_secs(1).ticks() as f64
}

/// Whether a value is finite; unknown values are infinite, and never NaN or negative.
pub(crate) fn is_known(value: f64) -> bool {
    value < f64::INFINITY
}

/// The cube root of `x`, within a few units in the last place; zero if `x` is not a positive number.
///
/// Newton's iteration `y ← (2y + x/y²)/3` from above falls monotonically to the root and is stopped when it no longer
/// falls. Two steps bring any `x` of interest near: scaling by 8 until it lies in [1/8, 1] (at most some 340 times), then at
/// most seven iterations from 1.
pub fn cube_root(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 || x.is_infinite() {
        return if x > 0.0 { x } else { 0.0 };
    }
    let (mut mantissa, mut scale) = (x, 1.0);
    // Multiplying and dividing by powers of two is exact, so scaling loses nothing.
    while mantissa > 1.0 {
        mantissa /= 8.0;
        scale *= 2.0;
    }
    while mantissa < 0.125 {
        mantissa *= 8.0;
        scale /= 2.0;
    }
    let mut root = 1.0;
    loop {
        let next = (2.0 * root + mantissa / (root * root)) / 3.0;
        if next >= root {
            return root * scale;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubes_of_whole_numbers_come_back() {
        for n in 1..2000_u32 {
            let n = f64::from(n);
            let error = (cube_root(n * n * n) - n).abs() / n;
            assert!(error < 4.0 * f64::EPSILON, "cube root of {}: off by {error:e}", n * n * n);
        }
    }

    #[test]
    fn powers_of_eight_are_exact() {
        assert_eq!([1e0, 8e0, 64e0, 0.125].map(|x| cube_root(x).to_bits()), [1e0, 2e0, 4e0, 0.5].map(f64::to_bits));
    }

    /// The curve `C(t-K)³` of CUBIC starts from K = cbrt(75): 4.2171633265087461 (by hand, 4.217³ = 74.9913).
    #[test]
    fn a_known_root() {
        assert!((cube_root(75.0) - 4.217_163_326_508_746).abs() < 1e-14);
    }

    #[test]
    fn the_ends_of_the_range_are_safe() {
        for x in [f64::MIN_POSITIVE, 1e-300, 1e300, 1e308] {
            let y = cube_root(x);
            assert!((y * y * y / x - 1.0).abs() < 1e-14, "cube root of {x:e} is {y:e}");
        }
        for x in [0.0, -8.0, f64::NAN] {
            assert!(cube_root(x).abs() < f64::MIN_POSITIVE);
        }
    }
}
