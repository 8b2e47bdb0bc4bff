use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{chown, symlink};

use super::*;

fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ab-offer-{test}-{}", std::process::id()));
    _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    folder
}

/// The socket of a killed process with this number is replaced, and one with another number is removed.
#[tokio::test]
async fn socket_of_dead_process_is_replaced() {
    let folder = folder("left");
    let (own, other) = (place::place(&folder, std::process::id()), place::place(&folder, 3));
    for place in [&own, &other] {
        drop(std::os::unix::net::UnixListener::bind(place).unwrap());
    }
    let private = folder.join(format!("anabranch-{}.new", std::process::id()));
    fs::create_dir(&private).unwrap();
    drop(std::os::unix::net::UnixListener::bind(private.join("s")).unwrap());
    let all = Arc::<Mutex<Connections>>::default();
    assert_eq!(serve("send", &all, &folder).unwrap(), own);
    assert!(!other.exists() && !private.exists());
    let mut watched = place::connect(&own, Duration::ZERO).unwrap();
    let line = tokio::task::spawn_blocking(move || {
        let mut start = [0; 7];
        watched.read_exact(&mut start).unwrap();
        start
    });
    assert_eq!(&line.await.unwrap(), b"{\"pid\":");
    fs::remove_dir_all(&folder).unwrap();
}

/// A file, a link to one, and a file of another user are not changed; then there is no socket.
#[tokio::test]
async fn existing_file_is_not_replaced_by_socket() {
    let folder = folder("taken");
    let own = place::place(&folder, std::process::id());
    let all = Arc::<Mutex<Connections>>::default();
    let victim = folder.join("victim");
    let refused = || {
        let refused = serve("send", &all, &folder).map(drop).unwrap_err();
        let left = fs::read_dir(&folder).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_str().unwrap().ends_with(".new")
        });
        assert_eq!(left.count(), 0, "{refused}");
        refused.kind()
    };
    fs::write(&victim, "precious").unwrap();
    fs::write(&own, "precious").unwrap();
    assert_eq!(refused(), io::ErrorKind::InvalidInput);
    assert_eq!(fs::read(&own).unwrap(), b"precious");
    fs::remove_file(&own).unwrap();
    symlink(&victim, &own).unwrap();
    assert_eq!(refused(), io::ErrorKind::InvalidInput);
    assert!(own.is_symlink() && fs::read(&victim).unwrap() == b"precious");
    fs::remove_file(&own).unwrap();
    let foreign = std::os::unix::net::UnixListener::bind(&own).unwrap();
    if chown(&own, Some(4711), None).is_ok() {
        assert_eq!(refused(), io::ErrorKind::PermissionDenied);
        assert!(own.exists());
    } else {
        println!("not run with another user's socket: only root may give files away");
    }
    drop(foreign);
    fs::remove_dir_all(&folder).unwrap();
}
