//! The part of a flow's schema that `derive` cannot express: the keys of a flow and of its transport are in one table.

use schemars::Schema;
use serde_json::json;

/// The schema of a flow: the key `transport` selects the schema of the transport's keys in the same table.
pub(super) fn one_table(schema: &mut Schema) {
    if let Some(transport) = schema.pointer_mut("/properties/transport") {
        let description = transport["description"].take();
        *transport = json!({ "type": "string", "format": "transport", "description": description });
    }
    schema.remove("additionalProperties");
    schema.insert("allOf".to_owned(), json!([{ "$ref": "#/$defs/transport" }]));
    schema.insert("unevaluatedProperties".to_owned(), json!(false));
}

/// The schema of a transport's keys: the flow's schema has the other keys of the table, and refuses unknown keys.
pub(super) fn part(schema: &mut Schema) {
    schema.remove("additionalProperties");
}
