//! Answers as JSON texts.
//!
//! `serde_json` writes them too, but with a table of powers that is a fiftieth of the packed module.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// The JSON text of a value. Its numbers are read again to the bit.
pub(crate) fn written(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => write_number(number, text),
        Value::String(content) => quote(content, text),
        Value::Array(values) => {
            text.push('[');
            for (place, value) in values.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                write(value, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (place, (name, value)) in fields.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                quote(name, text);
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
    }
}

fn write_number(number: &Number, text: &mut String) {
    let written = match (number.as_u64(), number.as_i64()) {
        (Some(number), _) => write!(text, "{number}"),
        (None, Some(number)) => write!(text, "{number}"),
        // It is finite, and with an exponent if it is long.
        (None, None) => write!(text, "{:?}", number.as_f64().unwrap_or_default()),
    };
    written.expect("a string takes what is written");
}

fn quote(content: &str, text: &mut String) {
    text.push('"');
    let mut rest = content;
    while let Some(place) = rest.find(|sign: char| sign < ' ' || sign == '"' || sign == '\\') {
        text.push_str(&rest[..place]);
        // All of them have one byte.
        write!(text, "\\u{:04x}", rest.as_bytes()[place]).expect("a string takes what is written");
        rest = &rest[place + 1..];
    }
    text.push_str(rest);
    text.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_written_value_is_read_as_the_same() {
        let numbers = [0.0, -0.0, 0.1, 1e-7, 5e-324, 1e15, 1e16, 1.5e300, f64::MAX, f64::MIN_POSITIVE, -2.5, 1.0 / 3.0];
        let value = json!({
            "texts": ["", "plain", "a \"quote\"\\", "line\r\n\ttab\u{0}\u{1f}\u{7f}", "µ 漢 🦀 \u{2028}"],
            "whole": [0, 1, -1, u64::MAX, i64::MIN],
            "numbers": numbers,
            "a \"key\"\n": [null, true, false, [], {}, [[1], {"a": []}]],
        });
        let read: Value = serde_json::from_str(&written(&value)).expect("it is JSON");
        assert_eq!(read, value);
        for (place, number) in numbers.iter().enumerate() {
            assert_eq!(read["numbers"][place].as_f64().map(f64::to_bits), Some(number.to_bits()), "{number}");
        }
    }
}
