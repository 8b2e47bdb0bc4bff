use super::super::{Document, tests};

/// The tree of a document, printed without places.
fn shown(text: &str) -> Result<String, String> {
    let document = Document::parse("e.toml", text).map_err(|error| error.to_string())?;
    Ok(tests::shown(&document))
}

#[track_caller]
fn assert_refused(text: &str, message: &str) {
    assert_eq!(shown(text).expect_err(message), message);
}

#[test]
fn each_entry_is_an_element() {
    let short = "[[claim]]\nitem = \"t\"\nunit = \"s\"\neach = [\n{ row = \"a\", published = 1 },\n{ row = \"b\", unit = \"ms\", published = 2 },\n]\n";
    let long = "[[claim]]\nitem = \"t\"\nunit = \"s\"\nrow = \"a\"\npublished = 1\n\
                [[claim]]\nitem = \"t\"\nunit = \"ms\"\nrow = \"b\"\npublished = 2\n";
    assert_eq!(shown(short), shown(long));
}

#[test]
fn names_stand_for_what_an_entry_or_a_text_says() {
    let short = "[text]\nwhy = \"It costs $5.\"\n[[claim]]\nrow = \"$law, alpha $alpha\"\norder = [\"m('$law')\"]\nbecause = \"$why\"\n\
                 each = [{ law = \"FAST\", alpha = 8 }, { law = \"Vegas\", alpha = 2, because = \"$$$alpha: $law\" }]\n";
    let long = "[[claim]]\nrow = \"FAST, alpha 8\"\norder = [\"m('FAST')\"]\nbecause = \"It costs $$5.\"\n\
                [[claim]]\nrow = \"Vegas, alpha 2\"\norder = [\"m('Vegas')\"]\nbecause = \"$$2: Vegas\"\n";
    assert_eq!(shown(short), shown(long));
}

/// A key that no `$` uses belongs to the element; if it is unknown there, the error has its line.
#[test]
fn a_misspelt_key_is_no_name() {
    let text = "[[claim]]\nrow = \"$law\"\neach = [{ law = \"FAST\", becuase = \"x\" }]\n";
    assert!(shown(text).unwrap().contains("becuase"));
}

#[test]
fn malformed_each_is_refused_at_its_place() {
    let remedy = "write each = [{ row = \"a\" }, { row = \"b\" }]";
    assert_refused("[[claim]]\neach = 3\n", &format!("e.toml:2:8: `each` is not a list; {remedy}"));
    assert_refused("[[claim]]\neach = []\n", &format!("e.toml:2:8: `each` has 0 entries, and not 1 to 1000; {remedy}"));
    assert_refused("[[claim]]\neach = [{}, 3]\n", &format!("e.toml:2:13: an entry of `each` is not a table; {remedy}"));
    assert_refused(
        "[text]\nwhy = \"x\"\n[[claim]]\nbecause = \"$wy\"\n",
        "e.toml:4:11: nothing says what `$wy` is; say it in `each` or in [text]: did you mean `why`?",
    );
    assert_refused(
        "[[note]]\ntext = \"5 $\"\n",
        "e.toml:2:8: `$` without a name; write $name, or $$ for the sign itself",
    );
    assert_refused(
        "[[claim]]\nrow = \"$x\"\neach = [{ x = 1.5 }]\n",
        "e.toml:3:15: what stands for a $name is a string or a whole number; write it as a string",
    );
    let remedy = "write name = \"...\", and $name where it is to stand";
    assert_refused("text = 3\n", &format!("e.toml:1:8: [text] holds names and strings; {remedy}"));
    assert_refused("[text]\n\"a b\" = \"x\"\n", &format!("e.toml:2:9: [text] holds names and strings; {remedy}"));
}

/// A file of some kilobytes cannot expand to gigabytes, by names within a text, or by entries of an element with a long list.
#[test]
fn each_beyond_memory_limit_is_refused() {
    let names = "$x".repeat(20_000);
    let text = format!("[text]\nx = \"{}\"\n[[note]]\ntext = \"{names}\"\n", "y".repeat(20_000));
    assert!(shown(&text).unwrap_err().contains("stand for is too much"), "400 MB");
    let entries = "{},".repeat(1000);
    let text = format!("[[claim]]\norder = [{}]\neach = [{entries}]\n", "1,".repeat(20_000));
    assert!(shown(&text).unwrap_err().contains("stand for is too much"), "20 million values");
}
