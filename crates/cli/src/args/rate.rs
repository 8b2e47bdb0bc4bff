//! Rate limits in the arguments.

use anabranch::Config;
use anabranch::units::{ParseError, Rate};

/// A rate limit of a connection.
pub(super) fn limit(text: &str) -> Result<Rate, String> {
    let rate: Rate = text.parse().map_err(|error: ParseError| error.to_string())?;
    let least = Config::RATE_MIN;
    if rate < least { Err(format!("the rate is below {least}, at which a packet takes a second")) } else { Ok(rate) }
}
