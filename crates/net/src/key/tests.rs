use super::*;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("anabranch-key-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_key_comes_back_from_its_file() {
    let folder = folder("back");
    let (key, file) = (SecretKey::generate().unwrap(), folder.join("key"));
    key.write_new(&file).unwrap();
    assert_eq!(SecretKey::read(&file).unwrap().public(), key.public());
    let before = fs::read(&file).unwrap();
    let again = SecretKey::generate().unwrap().write_new(&file);
    assert!(matches!(again, Err(KeyFileError::Exists(_))), "{again:?}");
    assert_eq!(fs::read(&file).unwrap(), before, "nothing is written over a key");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
    fs::remove_dir_all(folder).unwrap();
}

#[cfg(unix)]
#[test]
fn a_key_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder("shared");
    let file = folder.join("key");
    SecretKey::generate().unwrap().write_new(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    for mode in [0o640, 0o604, 0o620, 0o601] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let read = SecretKey::read(&file);
        assert!(matches!(read, Err(KeyFileError::Shared(_, refused)) if refused == mode), "{mode:o}: {read:?}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn file_that_is_no_key_is_refused() {
    let folder = folder("none");
    let file = folder.join("key");
    for bytes in [&b""[..], b"anabranch-secret-key\n", b"anabranch-secret-key abc\n", b"\xff\xff", &[b'a'; 10_000]] {
        _ = fs::remove_file(&file);
        private_file(&file).unwrap().write_all(bytes).unwrap();
        let read = SecretKey::read(&file);
        assert!(matches!(read, Err(KeyFileError::NoKey(_))), "{read:?}");
    }
    assert!(matches!(SecretKey::read(&folder.join("nothing")), Err(KeyFileError::Io(..))));
    fs::remove_dir_all(folder).unwrap();
}

/// Only a key is worth the advice to change a mode: `chmod 600 /etc/passwd` would lock everybody out.
#[cfg(unix)]
#[test]
fn mode_of_file_without_key_not_criticised() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder("passwd");
    let file = folder.join("passwd");
    fs::write(&file, "root:x:0:0:root:/root:/bin/bash\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let read = SecretKey::read(&file);
    assert!(matches!(read, Err(KeyFileError::NoKey(_))), "{read:?}");
    let pipe = folder.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for other in [&*pipe, &folder, Path::new("/dev/zero")] {
        let read = SecretKey::read(other);
        assert!(matches!(read, Err(KeyFileError::NoKey(_))), "{read:?}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[cfg(unix)]
#[test]
fn new_key_beside_foreign_part_file_keeps_it() {
    let folder = folder("part");
    let (file, part) = (folder.join("key"), folder.join(format!("key.{}.part", std::process::id())));
    fs::write(&part, "precious").unwrap();
    let written = SecretKey::generate().unwrap().write_new(&file);
    assert!(matches!(&written, Err(KeyFileError::Io(path, _)) if *path == part), "{written:?}");
    assert_eq!(fs::read(&part).unwrap(), b"precious");
    assert!(!file.exists());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_typing_error_in_a_public_key_is_found() {
    let key = PublicKey::new(std::array::from_fn(|place| place as u8));
    let text = key.to_string();
    assert_eq!((text.len(), text.parse()), (KEY_LETTERS, Ok(key)));
    for place in 0..text.len() {
        let mut letters: Vec<char> = text.chars().collect();
        letters[place] = if letters[place] == 'x' { 'y' } else { 'x' };
        let wrong = letters.into_iter().collect::<String>().parse::<PublicKey>();
        assert!(wrong.is_err(), "{place}: {wrong:?}");
    }
    assert_eq!(text.replace('a', "1").parse::<PublicKey>(), Err(ParseKeyError::Letter(0)));
    assert_eq!(text[..50].parse::<PublicKey>(), Err(ParseKeyError::Length));
}
