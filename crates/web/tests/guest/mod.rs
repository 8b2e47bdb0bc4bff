//! Laws that are modules, in WASM's text form.

/// A module whose table is at 1024 and whose window is 10, with `more`. It has a setting `n`, 0 to a million, at 2064.
pub(crate) fn module(more: &str) -> Vec<u8> {
    let float = |number: f64| number.to_le_bytes().map(|byte| format!("\\{byte:02x}")).concat();
    let word = |number: u32| number.to_le_bytes().map(|byte| format!("\\{byte:02x}")).concat();
    let setting = [word(3000), word(0), word(0), word(0), float(0.0), float(0.0), float(1e6)].concat();
    let text = format!(
        "(module (memory (export \"memory\") 1) (data (i32.const 1024) \"\\01\") (data (i32.const 1056) \"{}\")\n\
         (data (i32.const 1036) \"{}{}\") (data (i32.const 2048) \"{setting}\") (data (i32.const 3000) \"n\\00\")\n\
         (func (export \"anabranch\") (result i32) (i32.const 1024))\n{more})",
        float(10.0),
        word(1),
        word(2048),
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A hook that adds one segment for each ACK.
pub(crate) const GROWS: &str =
    "(func (export \"on_ack\") (f64.store (i32.const 1056) (f64.add (f64.load (i32.const 1056)) (f64.const 1))))";
