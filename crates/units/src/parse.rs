//! Numbers with units, read and written exactly: the conversion uses no floats.

use std::fmt;

/// Why a text is not a quantity. The message has the text, what was expected, and the units that are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    text: String,
    expected: &'static str,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    NotANumber,
    NoUnit { units: String },
    UnknownUnit { unit: String, units: String },
    TooLarge,
}

impl std::error::Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, expected, problem } = self;
        write!(f, "`{text}` is not {expected}: ")?;
        match problem {
            Problem::NotANumber => write!(f, "it does not start with a number that is zero or more"),
            Problem::NoUnit { units } => write!(f, "the unit is missing, use one of {units}"),
            Problem::UnknownUnit { unit, units } => write!(f, "`{unit}` is not a unit here, use one of {units}"),
            Problem::TooLarge => write!(f, "it is too large"),
        }
    }
}

/// Digits that a number may have: enough for every `u64`, few enough that the arithmetic below stays within `u128`.
const DIGITS_MAX: usize = 20;

/// Reads `number unit` and returns it in ticks, rounded to the nearest: `number · unit_size · numerator / denominator`.
pub(crate) fn quantity(
    text: &str,
    expected: &'static str,
    units: &[(&str, u128)],
    numerator: u128,
    denominator: u128,
) -> Result<u64, ParseError> {
    let fail = |problem| ParseError { text: text.to_owned(), expected, problem };
    let names = || units.iter().map(|(name, _)| *name).filter(|name| name.is_ascii()).collect::<Vec<_>>().join(", ");
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || fraction.contains('.') {
        return Err(fail(Problem::NotANumber));
    }
    if digits.len() > DIGITS_MAX {
        return Err(fail(Problem::TooLarge));
    }
    let mantissa: u128 = digits.parse().map_err(|_| fail(Problem::NotANumber))?;
    if unit.is_empty() && mantissa != 0 {
        return Err(fail(Problem::NoUnit { units: names() }));
    }
    let size = match units.iter().find(|(name, _)| *name == unit) {
        Some(&(_, size)) => size,
        None if unit.is_empty() => 1,
        None => return Err(fail(Problem::UnknownUnit { unit: unit.to_owned(), units: names() })),
    };
    let scale = 10_u128.pow(fraction.len() as u32).checked_mul(denominator);
    let scaled = mantissa.checked_mul(size).and_then(|value| value.checked_mul(numerator));
    let (Some(scaled), Some(scale)) = (scaled, scale) else { return Err(fail(Problem::TooLarge)) };
    u64::try_from((scaled + scale / 2) / scale).map_err(|_| fail(Problem::TooLarge))
}

/// `value / unit` as a decimal without trailing zeros; `unit` is a power of ten.
pub(crate) fn decimal(value: u64, unit: u64) -> String {
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    format!("{whole}.{rest:0width$}").trim_end_matches('0').to_owned()
}
