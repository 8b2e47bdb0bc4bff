use std::fmt::Write as _;

use super::*;

#[test]
fn the_first_comment_is_the_question() {
    let document = Document::parse("x", "# Does one dropped packet\n# stop FAST?\n\n# not this\nseed = 1\n").unwrap();
    assert_eq!(document.comment(), "Does one dropped packet stop FAST?");
    let paragraphs = Document::parse("x", "# Does it\n# stop?\n#\n#\n# It does.\nseed = 1\n").unwrap();
    assert_eq!(paragraphs.comment(), "Does it stop?\n\nIt does.");
    assert_eq!(Document::parse("x", "seed = 1\n# late\n").unwrap().comment(), "");
}

#[test]
fn places_count_characters_not_bytes() {
    let document = Document::parse("x", "\"µ\" = { b = 1 }\n").unwrap();
    let node = document.node(&Path::default().key("µ").key("b")).unwrap();
    assert_eq!(node.place, Place::Line { line: 1, column: 13 });
}

#[test]
fn keys_keep_the_order_of_the_file() {
    let document = Document::parse("x", "z = 1\na = 2\nm = 3\n").unwrap();
    let Value::Table(entries) = &document.root.value else { panic!("a document is a table") };
    let names: Vec<_> = entries.iter().map(|(key, _)| key.name.as_str()).collect();
    assert_eq!(names, ["z", "a", "m"]);
}

/// The value of an override cannot add further keys behind a line break.
#[test]
fn an_override_sets_one_value() {
    let mut document = Document::parse("x", "seed = 1\n").unwrap();
    document.set("seed=2\nduration=3").unwrap();
    let seed = document.node(&Path::default().key("seed")).unwrap();
    assert!(matches!(&seed.value, Value::String(text) if text == "2\nduration=3"));
    assert!(document.node(&Path::default().key("duration")).is_none());
}

/// A message lists some of thousands of names, and their number.
#[test]
fn a_long_list_of_names_is_cut() {
    let names: Vec<String> = (0..1000).map(|number| format!("n{number}")).collect();
    let text = suggestion("elsewhere", names.iter().map(String::as_str));
    assert!(text.starts_with("there are n0, n1, ") && text.ends_with(", n49 and 950 more"), "{text}");
}

/// A document's tree without its places.
pub(super) fn shown(document: &Document) -> String {
    fn show(node: &Node, out: &mut String) {
        let _ = match &node.value {
            Value::Table(entries) => {
                out.push('{');
                entries.iter().for_each(|(key, node)| {
                    let _ = write!(out, "{}=", key.name);
                    show(node, out);
                });
                write!(out, "}} ")
            }
            Value::Array(elements) => {
                out.push('[');
                elements.iter().for_each(|node| show(node, out));
                write!(out, "] ")
            }
            value => write!(out, "{value:?} "),
        };
    }
    let mut out = String::new();
    show(&document.root, &mut out);
    out
}
