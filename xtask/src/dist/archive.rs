//! Archives with the same bytes for the same content: in the order of their names, without an owner, with one time.

use std::io::Write as _;
use std::path::Path;

use flate2::{Compression, GzBuilder};

use super::pages::Pages;
use super::release::Release;

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct File {
    /// Its path from the root of the archive, with `/`.
    pub(super) path: String,
    pub(super) is_program: bool,
    pub(super) bytes: Vec<u8>,
}

impl File {
    pub(super) fn new(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), is_program: false, bytes: bytes.into() }
    }
}

/// The archive of a program: itself, man pages, completions, the unit of systemd, licences and the file that builds a container.
pub(super) fn of_program(
    release: &Release,
    triple: &str,
    program: &Path,
    pages: &Pages,
    licences: &[File],
) -> Result<Vec<u8>, String> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let mut files = vec![File { path: "anabranch".to_owned(), is_program: true, bytes: read(program)? }];
    files.extend(pages.man.iter().map(|(name, page)| File::new(format!("man/man1/{name}"), page.clone())));
    files.extend(
        pages.completions.iter().map(|(name, script)| File::new(format!("completions/{name}"), script.clone())),
    );
    for (from, to) in FILES {
        files.push(File::new(to, read(&release.source.join(from))?));
    }
    files.extend(licences.iter().cloned());
    let root = format!("anabranch-{}-{triple}", release.version);
    for file in &mut files {
        file.path = format!("{root}/{}", file.path);
    }
    tar_gz(files, release.time)
}

/// Files of the repository, and where they go.
const FILES: [(&str, &str); 6] = [
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("Containerfile", "Containerfile"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("PATENTS.md", "PATENTS.md"),
    ("docs/systemd/anabranch-kernel@.service", "systemd/anabranch-kernel@.service"),
];

/// Packs files, whatever their order.
pub(super) fn tar_gz(mut files: Vec<File>, time: u64) -> Result<Vec<u8>, String> {
    files.sort();
    let failed = |error: std::io::Error| format!("cannot pack: {error}");
    let mut tar = tar::Builder::new(Vec::new());
    for File { path, is_program, bytes } in &files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(if *is_program { 0o755 } else { 0o644 });
        header.set_mtime(time);
        header.set_uid(0);
        header.set_gid(0);
        tar.append_data(&mut header, path, &bytes[..]).map_err(failed)?;
    }
    gz(&tar.into_inner().map_err(failed)?)
}

/// Compresses bytes. The header of gzip has no name, no time and an unknown system.
pub(super) fn gz(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut packed = GzBuilder::new().mtime(0).operating_system(UNKNOWN).write(Vec::new(), Compression::best());
    packed.write_all(bytes).and_then(|()| packed.finish()).map_err(|error| format!("cannot pack: {error}"))
}

/// [rfc-1952] sec. 2.3.1.
const UNKNOWN: u8 = 255;

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    fn files() -> Vec<File> {
        let program = File { path: "a-1/anabranch".to_owned(), is_program: true, bytes: vec![7; 1000] };
        vec![File::new("a-1/man/man1/b.1", "page"), program, File::new("a-1/LICENSE", "")]
    }

    #[test]
    fn order_of_files_does_not_count() {
        let mut turned = files();
        turned.reverse();
        assert_eq!(tar_gz(files(), 1_700_000_000).unwrap(), tar_gz(turned, 1_700_000_000).unwrap());
    }

    #[test]
    fn archive_has_modes_times_and_no_owner() {
        let packed = tar_gz(files(), 1_700_000_000).unwrap();
        // Magic, method, then: no name, no time, an unknown system.
        assert_eq!(packed[..4], [0x1f, 0x8b, 8, 0]);
        assert_eq!((&packed[4..8], packed[9]), (&[0; 4][..], 255));
        let mut told = vec![];
        let mut archive = tar::Archive::new(GzDecoder::new(&packed[..]));
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut bytes = vec![];
            entry.read_to_end(&mut bytes).unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            assert_eq!((header.username().unwrap(), header.groupname().unwrap()), (Some(""), Some("")));
            assert_eq!(header.mtime().unwrap(), 1_700_000_000);
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            told.push((path, header.mode().unwrap(), bytes.len()));
        }
        let expected = [("a-1/LICENSE", 0o644, 0), ("a-1/anabranch", 0o755, 1000), ("a-1/man/man1/b.1", 0o644, 4)];
        assert_eq!(told, expected.map(|(path, mode, len)| (path.to_owned(), mode, len)));
    }

    #[test]
    fn path_out_of_the_archive_is_refused() {
        assert!(tar_gz(vec![File::new("../a", "")], 0).is_err());
    }
}
