//! What `derive` cannot say of the keys of a flow: they and those of its transport stand in one table.

use schemars::Schema;
use serde_json::json;

/// Of a flow: `transport` is a word, by which the rest of the table is one of the tables of `transport`.
pub(super) fn one_table(schema: &mut Schema) {
    if let Some(transport) = schema.pointer_mut("/properties/transport") {
        let description = transport["description"].take();
        *transport = json!({ "type": "string", "format": "transport", "description": description });
    }
    schema.remove("additionalProperties");
    schema.insert("allOf".to_owned(), json!([{ "$ref": "#/$defs/transport" }]));
    schema.insert("unevaluatedProperties".to_owned(), json!(false));
}

/// Of what a transport has besides: the other keys of the table are the flow's, which refuses what neither has.
pub(super) fn part(schema: &mut Schema) {
    schema.remove("additionalProperties");
}
