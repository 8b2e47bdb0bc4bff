use super::super::tests::shown;
use super::super::{Document, Path};
use super::*;

/// Reads `files[0]`, which extends others of them.
fn read(files: &[(&str, &str)]) -> Result<Document, String> {
    let mut bases = |name: &str| {
        let found = files.iter().find(|(file, _)| *file == name);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "there is none".to_owned())
    };
    Document::parse_with(files[0].0, files[0].1, &mut bases).map_err(|error| error.to_string())
}

#[track_caller]
fn assert_same(files: &[(&str, &str)], whole: &str) {
    let whole = Document::parse("whole.toml", whole).unwrap();
    assert_eq!(shown(&read(files).unwrap()), shown(&whole));
}

#[track_caller]
fn assert_refused(files: &[(&str, &str)], message: &str) {
    assert_eq!(read(files).expect_err(message), message);
}

#[test]
fn tables_merge_by_key_and_elements_by_id() {
    assert_same(
        &[
            (
                "law/a.toml",
                "extends = \"../common/net.toml\"\nseed = 2\n[[link]]\nid = \"second\"\ndelay = \"9ms\"\n[[link]]\nid = \"third\"\n\
                 [measure]\nn = \"2\"\nm = \"3\"\n",
            ),
            (
                "common/net.toml",
                "seed = 1\nduration = \"1s\"\n[[link]]\nid = \"first\"\n[[link]]\nid = \"second\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n\
                 [measure]\nm = \"1\"\n",
            ),
        ],
        "seed = 2\nduration = \"1s\"\n[[link]]\nid = \"first\"\n[[link]]\nid = \"second\"\nrate = \"1Mbit/s\"\ndelay = \"9ms\"\n\
         [[link]]\nid = \"third\"\n[measure]\nm = \"3\"\nn = \"2\"\n",
    );
}

/// A RED queue replaces a drop-tail one; a queue of the same kind gets one key more.
#[test]
fn a_table_of_another_kind_replaces() {
    let base = ("b.toml", "[[link]]\nid = \"a\"\nqueue = { kind = \"drop_tail\", packets = 5 }\n");
    let own = |queue: &str| format!("extends = \"b.toml\"\n[[link]]\nid = \"a\"\nqueue = {queue}\n");
    let red = own("{ kind = \"red\", limit = 9 }");
    assert_same(&[("a.toml", &red), base], "[[link]]\nid = \"a\"\nqueue = { kind = \"red\", limit = 9 }\n");
    let more = own("{ bytes = 9 }");
    let whole = "[[link]]\nid = \"a\"\nqueue = { kind = \"drop_tail\", packets = 5, bytes = 9 }\n";
    assert_same(&[("a.toml", &more), base], whole);
}

/// Claims, axes and plain lists are either the file's own or the base's.
#[test]
fn other_lists_replace() {
    let base =
        ("b.toml", "[[claim]]\nrow = \"x\"\n[[claim]]\nrow = \"y\"\n[[axis]]\nname = \"n\"\nvalues = { a = {} }\n");
    let own = "extends = \"b.toml\"\n[[claim]]\nrow = \"z\"\n";
    let whole = "[[claim]]\nrow = \"z\"\n[[axis]]\nname = \"n\"\nvalues = { a = {} }\n";
    assert_same(&[("a.toml", own), base], whole);
}

/// An element with a count is merged before it is written out, so that a file can change the count.
#[test]
fn a_count_can_be_another() {
    let base = ("b.toml", "[[flow]]\nid = \"f#\"\ncount = 2\nwindow = 7\n");
    let whole = "[[flow]]\nid = \"f#\"\ncount = 3\nwindow = 7\n";
    assert_same(&[("a.toml", "extends = \"b.toml\"\n[[flow]]\nid = \"f#\"\ncount = 3\n"), base], whole);
}

/// Of two links with one name in a file, the second does not change the first.
#[test]
fn a_name_that_comes_twice_in_a_file_stays_twice() {
    let own = "extends = \"b.toml\"\n[[link]]\nid = \"a\"\nfrom = \"x\"\n[[link]]\nid = \"a\"\nfrom = \"y\"\n";
    let whole = "[[link]]\nid = \"a\"\nto = \"z\"\nfrom = \"x\"\n[[link]]\nid = \"a\"\nfrom = \"y\"\n";
    assert_same(&[("a.toml", own), ("b.toml", "[[link]]\nid = \"a\"\nto = \"z\"\n")], whole);
}

#[test]
fn a_base_may_extend_another_from_its_own_folder() {
    let files = [
        ("x/a.toml", "extends = \"../y/b.toml\"\nseed = 1\n"),
        ("y/b.toml", "extends = \"c.toml\"\nseed = 2\nduration = \"2s\"\n"),
        ("y/c.toml", "seed = 3\nduration = \"3s\"\nclock = \"ns2\"\n"),
    ];
    let whole = "seed = 1\nduration = \"2s\"\nclock = \"ns2\"\n";
    let document = read(&files).unwrap();
    assert_eq!(shown(&document).matches('=').count(), 3);
    assert_eq!(document.node(&Path::default().key("seed")).unwrap().place, Place::Line { line: 2, column: 8 });
    let whole = Document::parse("w.toml", whole).unwrap();
    for key in ["seed", "duration", "clock"] {
        let value = |document: &Document| format!("{:?}", document.node(&Path::default().key(key)).unwrap().value);
        assert_eq!(value(&document), value(&whole));
    }
    let bases: Vec<&str> = document.bases().iter().map(|base| &*base.file).collect();
    assert_eq!(bases, ["y/b.toml", "y/c.toml"]);
    assert!(document.whole_text().ends_with(&format!("\n# y/c.toml\n\n{}", files[2].1)));
}

#[test]
fn a_mistake_is_shown_in_the_file_where_it_stands() {
    let base = "seed = 1\nduration = \"1s\"\ncolour = 3\n";
    let refused = |own: &str| {
        let document = read(&[("a.toml", own), ("b.toml", base)]).unwrap();
        crate::scenario::Scenario::parse(&document).unwrap_err().to_string()
    };
    assert!(refused("extends = \"b.toml\"\n").starts_with("b.toml:3:1: unknown key `colour`"));
    assert!(refused("extends = \"b.toml\"\nduration = \"1 parsec\"\n").starts_with("a.toml:2:12: "));
    assert!(refused("extends = \"b.toml\"\ncolour = 4\n").starts_with("a.toml:2:1: unknown key `colour`"));
    let broken = ("b.toml", "seed = 1\nx = \n");
    let message = read(&[("a.toml", "extends = \"b.toml\"\n"), broken]).unwrap_err();
    assert!(message.starts_with("b.toml:2:5: not TOML"), "{message}");
}

#[test]
fn circles_depth_and_missing_files_are_errors() {
    assert_refused(
        &[("x/a.toml", "\nextends = \"../y/b.toml\"\n"), ("y/b.toml", "extends = \"../x/a.toml\"\n")],
        "y/b.toml:1:11: a file extends itself: x/a.toml extends y/b.toml extends x/a.toml; let one of them extend nothing",
    );
    assert_refused(
        &[("a.toml", "seed = 1\nextends = \"b.toml\"\n")],
        "a.toml:2:11: `b.toml` cannot be read: there is none; name a scenario file, relative to this one",
    );
    assert_refused(
        &[("a.toml", "extends = 3\n")],
        "a.toml:1:11: `extends` is not a string; name one file, relative to this one",
    );
    let names: Vec<String> = (0..=10).map(|number| format!("{number}.toml")).collect();
    let texts: Vec<String> = (1..=11).map(|number| format!("extends = \"{number}.toml\"\n")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    assert_refused(&files, "8.toml:1:11: more than 8 files extend each other; put what they share into fewer");
    // Eight are enough.
    assert!(read(&[&files[..8], &[("8.toml", "")]].concat()).is_ok());
}

/// A name means the same on every machine, and only a TOML file below the current folder.
#[test]
fn only_relative_paths_of_toml_files_are_followed() {
    for path in ["", "/etc/a.toml", "a/../../b", "./a.toml", "a//b.toml", "..\\a.toml", "c:/a.toml", "../etc/passwd"] {
        let text = format!("extends = '{path}'\n");
        let message = read(&[("x/a.toml", &text)]).unwrap_err();
        assert!(message.contains("is not a relative path of a TOML file"), "{path}: {message}");
    }
    for (file, extends, resolved) in [
        ("a.toml", "b.toml", "b.toml"),
        ("x/y/a.toml", "../../b.toml", "b.toml"),
        ("x/a.toml", "../../b.toml", "../b.toml"),
        ("../a.toml", "../b.toml", "../../b.toml"),
        ("/x/a.toml", "../../b.toml", "/../b.toml"),
        ("./a.toml", "../b.toml", "./../b.toml"),
        ("C:\\x\\a.toml", "../b.toml", "C:/b.toml"),
    ] {
        assert_eq!(resolve(file, extends).unwrap(), resolved, "{file} extends {extends}");
    }
}
