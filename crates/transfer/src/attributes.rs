//! Extended attributes of files and folders: only those of users (`user.…`), without those among them that some programs take for owners, modes
//! or devices. Those of the system, such as capabilities and access lists, are not sent. Only files and folders that a transfer makes get some.
//!
//! ```text
//! attribute  length 1 | name, without `user.` | length 4 | value
//! ```

use std::fs::File;
use std::io;

/// The attributes of an entry, in their encoded form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// The attributes that these bytes encode; `None` if they encode none.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (mut rest, mut count) = (bytes, 0);
        while !rest.is_empty() {
            take(&mut rest)?;
            count += 1;
        }
        ((1..=COUNT_MAX).contains(&count) && bytes.len() <= BYTES_MAX).then_some(Self(bytes))
    }

    pub(crate) fn encoded(self) -> &'a [u8] {
        self.0
    }

    /// Names and values.
    fn each(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || take(&mut rest))
    }

    /// Sets them. Those that are there under other names stay.
    ///
    /// # Errors
    /// If the file system, or the system, has no such attributes, or not so many or such long ones. Others may have been set.
    pub(crate) fn set(self, file: &File) -> io::Result<()> {
        self.each().try_for_each(|(name, value)| system::set(file, name, value))
    }
}

/// The attributes of a file to be sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    bytes: Vec<u8>,
    count: usize,
    /// Names of attributes that are not sent.
    pub(crate) left: Vec<String>,
}

impl Found {
    /// Reads those of an open file or folder.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let mut found = Self::default();
        for name in system::names(file)? {
            let own = name.strip_prefix(USER).filter(|own| is_allowed(own));
            let value = own.map(|own| Ok::<_, io::Error>((own, system::value(file, &name)?))).transpose()?;
            match value {
                Some((own, value))
                    if found.count < COUNT_MAX && found.bytes.len() + own.len() + value.len() + 5 <= BYTES_MAX =>
                {
                    found.count += 1;
                    found.bytes.push(own.len() as u8);
                    found.bytes.extend(own);
                    found.bytes.extend((value.len() as u32).to_le_bytes());
                    found.bytes.extend(value);
                }
                _ => found.left.push(anabranch::units::shown_bytes(&name)),
            }
        }
        Ok(found)
    }

    pub(crate) fn attributes(&self) -> Attributes<'_> {
        Attributes(&self.bytes)
    }
}

/// Takes an attribute from encoded ones; `None` if it is invalid, or there is none.
fn take<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let len = usize::from(*rest.split_off_first()?);
    let name = rest.split_off(..len).filter(|name| is_allowed(name))?;
    let len = u32::from_le_bytes(*rest.split_off(..4)?.first_chunk()?);
    Some((name, rest.split_off(..len as usize)?))
}

/// Whether this may be the name of an attribute, without `user.`.
fn is_allowed(name: &[u8]) -> bool {
    let is_of_system = SYSTEM.iter().any(|begin| name.starts_with(begin));
    !name.is_empty() && name.len() <= NAME_MAX && !name.contains(&0) && !is_of_system
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use std::ffi::OsString;
    use std::fs::File;
    use std::io;
    use std::os::unix::ffi::OsStringExt as _;

    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    use rustix::io::Errno;

    /// The names of all attributes that this process may see.
    pub(super) fn names(file: &File) -> io::Result<Vec<Vec<u8>>> {
        let mut room = vec![0; LIST_MAX];
        let len = match flistxattr(file, &mut room[..]) {
            // A file system without attributes.
            Err(Errno::NOTSUP) => 0,
            read => read?,
        };
        Ok(room[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
    }

    pub(super) fn value(file: &File, name: &[u8]) -> io::Result<Vec<u8>> {
        let mut room = vec![0; VALUE_MAX];
        let len = fgetxattr(file, OsString::from_vec(name.to_vec()), &mut room[..])?;
        room.truncate(len);
        Ok(room)
    }

    pub(super) fn set(file: &File, name: &[u8], value: &[u8]) -> io::Result<()> {
        let name = OsString::from_vec([super::USER, name].concat());
        Ok(fsetxattr(file, name, value, XattrFlags::empty())?)
    }

    /// The limits of Linux, for the list of names and for a value.
    const LIST_MAX: usize = 64 << 10;
    const VALUE_MAX: usize = 64 << 10;
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use std::fs::File;
    use std::io;

    /// Attributes of other systems are of another kind, and are not read.
    pub(super) fn names(_: &File) -> io::Result<Vec<Vec<u8>>> {
        Ok(vec![])
    }

    pub(super) fn value(_: &File, _: &[u8]) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn set(_: &File, _: &[u8], _: &[u8]) -> io::Result<()> {
        Err(io::Error::other("this system has no attributes of Linux"))
    }
}

/// The namespace of attributes that users may set.
const USER: &[u8] = b"user.";

/// Names there that overlay file systems, containers and Samba take for owners, modes, or files that are gone.
const SYSTEM: [&[u8]; 5] = [b"overlay.", b"fuseoverlayfs.", b"containers.", b"DOSATTRIB", b"DosStream."];

/// The longest name, without the namespace.
const NAME_MAX: usize = 250;

/// Attributes of a file.
const COUNT_MAX: usize = 256;

/// The limit for the attributes of a file: the longest value that Linux takes, and its name.
const BYTES_MAX: usize = (64 << 10) + NAME_MAX + 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_that_are_cut_or_not_named_are_refused() {
        let encoded = [&[3][..], b"tag", &[2, 0, 0, 0], b"ab", &[1], b"x", &[0, 0, 0, 0]].concat();
        let read = Attributes::read(&encoded).unwrap();
        assert_eq!(read.each().collect::<Vec<_>>(), [(&b"tag"[..], &b"ab"[..]), (b"x", b"")]);
        for len in 0..encoded.len() {
            assert_eq!(Attributes::read(&encoded[..len]).is_some(), len == 10, "{len}");
        }
        for name in [&b""[..], b"a\0b", &[b'a'; 251], b"overlay.opaque", b"containers.override_stat", b"DOSATTRIB"] {
            let encoded = [&[name.len() as u8][..], name, &[0; 4]].concat();
            assert_eq!(Attributes::read(&encoded), None, "{name:?}");
        }
        let long = [&[1][..], b"x", &(70_000u32).to_le_bytes(), &[0; 70_000]].concat();
        assert_eq!(Attributes::read(&long), None);
    }
}
