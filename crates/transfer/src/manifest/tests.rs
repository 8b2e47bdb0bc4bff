use super::*;

fn entry(parent: Option<u32>, name: &str, kind: Kind<'static>) -> Entry<'static> {
    let modified = Stamp { seconds: -1_700_000_000, nanoseconds: 123_456_789 };
    let name = Leaf::new(name.as_bytes()).unwrap().bytes().to_vec().leak();
    Entry { parent, name: Leaf::new(name).unwrap(), kind, mode: 0o644, modified, attributes: Attributes::default() }
}

const PLAIN: Kind<'_> = Kind::File { size: 1, is_sparse: false };

fn built(entries: &[Entry<'_>]) -> Manifest {
    let mut builder = Builder::default();
    entries.iter().for_each(|entry| _ = builder.add(entry).unwrap());
    builder.build(Asks { compares: true, verifies: false })
}

fn manifest() -> Manifest {
    built(&[
        entry(None, "a", Kind::Folder),
        entry(Some(0), "b.txt", Kind::File { size: 1 << 40, is_sparse: true }),
        entry(Some(0), "ä", Kind::Folder),
        entry(Some(2), "l", Kind::Link(b"../b.txt")),
        entry(None, "c", Kind::File { size: 0, is_sparse: false }),
        entry(Some(2), "n", Kind::Name(1)),
        Entry { attributes: Attributes::read(TAGGED).unwrap(), ..entry(Some(2), "t", PLAIN) },
        entry(None, "s", Kind::Stream),
        entry(None, "x", Kind::Text),
    ])
}

/// The attribute `user.tag`.
const TAGGED: &[u8] = b"\x03tag\x04\0\0\0blue";

/// The encoding of entries without a check of them all.
fn list(entries: &[Entry<'_>]) -> Bytes {
    let mut bytes = [&MAGIC[..], &[VERSION, 0]].concat();
    entries.iter().for_each(|entry| put(entry, &mut bytes));
    bytes.into()
}

#[test]
fn manifest_that_is_read_is_what_was_written() {
    let manifest = manifest();
    assert_eq!(Manifest::read(manifest.encoded()), Ok(manifest.clone()));
    assert_eq!(manifest.totals(), (5, (1 << 40) + 1));
    assert_eq!(manifest.path(3), "a/ä/l");
    assert_eq!((manifest.entry(5).kind, manifest.entry(6).attributes.encoded()), (Kind::Name(1), TAGGED));
}

#[test]
fn manifest_that_is_cut_or_spoilt_is_refused_or_harmless() {
    let whole = manifest().encoded();
    for len in 0..whole.len() {
        let is_whole = matches!(Manifest::read(whole.slice(..len)), Ok(read) if read.len() < 9);
        assert!(is_whole || Manifest::read(whole.slice(..len)).is_err(), "{len}");
    }
    for place in 0..whole.len() {
        for flip in [1, 0x80, 0xff] {
            let mut bytes = whole.to_vec();
            bytes[place] ^= flip;
            // Whatever the bytes are, no name may leave its folder.
            let Ok(read) = Manifest::read(bytes.into()) else { continue };
            for (index, entry) in read.entries() {
                assert!(read.leaves(index).iter().all(|leaf| Leaf::new(leaf.bytes()).is_ok()));
                assert!(entry.mode <= 0o777);
                let Kind::Name(original) = entry.kind else { continue };
                assert!(original < index && read.entry(original).size().is_some());
            }
        }
    }
}

#[test]
fn name_that_is_there_twice_is_refused() {
    let folder = entry(None, "f", Kind::Folder);
    for entries in [
        [entry(None, "a", PLAIN), entry(None, "a", PLAIN), entry(None, "b", PLAIN)],
        [entry(None, "a", PLAIN), entry(None, "b", PLAIN), entry(None, "a", Kind::Folder)],
        [folder, entry(Some(0), "a", PLAIN), entry(Some(0), "a", Kind::Link(b"b"))],
    ] {
        assert!(matches!(Manifest::read(list(&entries)), Err(ManifestError::Twice(..))), "{entries:?}");
    }
    assert!(Manifest::read(list(&[folder, entry(None, "a", PLAIN), entry(Some(0), "a", PLAIN)])).is_ok());
}

#[test]
fn entry_that_is_in_no_folder_is_refused() {
    for parent in [0, 1, 2, 77] {
        let entries = [entry(None, "a", PLAIN), entry(Some(parent), "b", PLAIN)];
        assert_eq!(Manifest::read(list(&entries)), Err(ManifestError::Parent(1)), "{parent}");
    }
}

#[test]
fn path_of_more_than_its_limit_is_refused() {
    let nested = |count: u32, name: &str| {
        let parents = (0..count).map(|number| number.checked_sub(1));
        list(&parents.map(|parent| entry(parent, name, Kind::Folder)).collect::<Vec<_>>())
    };
    assert!(Manifest::read(nested(256, "a")).is_ok());
    assert_eq!(Manifest::read(nested(257, "a")), Err(ManifestError::Name(256, NameError::Long)));
    // 16 names of 191 bytes and a separator each are 3072.
    assert!(Manifest::read(nested(16, &"a".repeat(191))).is_ok());
    assert_eq!(Manifest::read(nested(17, &"a".repeat(191))), Err(ManifestError::Name(16, NameError::Long)));
}

#[test]
fn link_that_leads_out_of_its_folder_is_refused() {
    let folders = [entry(None, "a", Kind::Folder), entry(Some(0), "b", Kind::Folder)];
    for (parent, target, is_inside) in [
        (None, &b"x"[..], true),
        (None, b"../x", false),
        (Some(0), b"x", true),
        (Some(0), b"../x", false),
        (Some(1), b"../x", true),
        (Some(1), b"../../x", false),
        (Some(1), b"/x", false),
    ] {
        let link = Entry { kind: Kind::Link(target), ..entry(parent, "l", PLAIN) };
        let read = Manifest::read(list(&[folders[0], folders[1], link]));
        assert_eq!(read.is_ok(), is_inside, "{target:?} in {parent:?}: {read:?}");
    }
}

#[test]
fn further_name_of_what_is_no_earlier_file_is_refused() {
    let before = [entry(None, "f", Kind::Folder), entry(Some(0), "l", Kind::Link(b"x")), entry(Some(0), "a", PLAIN)];
    let named = |original| list(&[before[0], before[1], before[2], entry(Some(0), "n", Kind::Name(original))]);
    assert!(Manifest::read(named(2)).is_ok());
    for original in [0, 1, 3, 4, u32::MAX] {
        assert_eq!(Manifest::read(named(original)), Err(ManifestError::Original(3)), "{original}");
    }
}

#[test]
fn attributes_of_what_has_none_are_refused() {
    let attributes = Attributes::read(TAGGED).unwrap();
    for (kind, is_allowed) in [
        (PLAIN, true),
        (Kind::Folder, true),
        (Kind::Link(b"x"), false),
        (Kind::Stream, false),
        (Kind::Text, false),
        (Kind::Name(0), false),
    ] {
        let read = Manifest::read(list(&[entry(None, "a", PLAIN), Entry { attributes, ..entry(None, "b", kind) }]));
        assert_eq!(read.is_ok(), is_allowed, "{kind:?}: {read:?}");
    }
}

#[test]
fn other_version_is_told() {
    let mut bytes = manifest().encoded().to_vec();
    bytes[7] = b'1';
    assert_eq!(Manifest::read(bytes.into()), Err(ManifestError::Version(b'1')));
    assert_eq!(Manifest::read(Bytes::from_static(b"GET / HTTP/1.1")), Err(ManifestError::Magic));
}

#[test]
fn twins_of_a_name_are_those_that_differ_in_case() {
    let manifest = built(&[
        entry(None, "README", PLAIN),
        entry(None, "f", Kind::Folder),
        entry(None, "readme", PLAIN),
        entry(Some(1), "ReadMe", PLAIN),
        entry(None, "Readme", PLAIN),
    ]);
    assert_eq!(manifest.twins(), [(0, 0), (0, 2), (0, 4)]);
}

/// 1965 is before 1970, and its nanoseconds count forwards.
#[test]
fn stamp_of_a_time_before_1970_comes_back() {
    for (seconds, nanoseconds) in [(-141_022_980, 0), (-1, 999_999_999), (-1, 0), (0, 0), (0, 1), (1_700_000_000, 5)] {
        let stamp = Stamp { seconds, nanoseconds };
        assert_eq!(Stamp::of(stamp.time().unwrap()), stamp);
    }
    let before = SystemTime::UNIX_EPOCH - Duration::from_millis(250);
    assert_eq!(Stamp::of(before), Stamp { seconds: -1, nanoseconds: 750_000_000 });
}

#[test]
fn stamp_that_a_file_system_rounds_is_kept() {
    let stamp = |seconds, nanoseconds| Stamp { seconds, nanoseconds };
    let wanted = stamp(1_700_000_001, 123_456_789);
    for (seconds, nanoseconds, keeps) in [
        (1_700_000_001, 123_456_789, true),
        (1_700_000_001, 123_456_700, true),
        (1_700_000_001, 120_000_000, true),
        (1_700_000_001, 0, true),
        (1_700_000_000, 0, true),
        (1_700_000_001, 123_456_788, false),
        (1_700_000_002, 0, false),
        (1_699_999_999, 0, false),
    ] {
        assert_eq!(stamp(seconds, nanoseconds).keeps(wanted), keeps, "{seconds}.{nanoseconds}");
    }
    // Before 1970, too, a time is rounded to the earlier unit.
    assert!(stamp(-4, 0).keeps(stamp(-3, 5)) && stamp(-3, 0).keeps(stamp(-3, 5)) && !stamp(-2, 0).keeps(stamp(-3, 5)));
}
