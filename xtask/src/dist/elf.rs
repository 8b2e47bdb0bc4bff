//! Whether a program of Linux needs a loader and libraries of the system.

/// Whether an ELF file of 64 bits names no interpreter: the kernel starts it alone, on any distribution.
pub(super) fn is_static(file: &[u8]) -> Result<bool, String> {
    let bytes = |at: usize, len: usize| file.get(at..at.checked_add(len)?);
    let number = |at: usize, len: usize| {
        let bytes = bytes(at, len).ok_or("the file is cut off")?;
        Ok::<_, String>(bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte)))
    };
    // 64 bits, least byte first.
    if bytes(0, 6) != Some(&[0x7f, b'E', b'L', b'F', 2, 1]) {
        return Err("no program of Linux with 64 bits".to_owned());
    }
    let (begin, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    for index in 0..count {
        let at =
            begin.checked_add(index * size).and_then(|at| usize::try_from(at).ok()).ok_or("the file is cut off")?;
        if number(at, 4)? == INTERPRETER {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `PT_INTERP`.
const INTERPRETER: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with its segments behind it.
    fn file(kinds: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 0x40];
        file[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        (file[0x20], file[0x36], file[0x38]) = (0x40, 56, kinds.len() as u8);
        for &kind in kinds {
            file.push(kind);
            file.resize(file.len() + 55, 0);
        }
        file
    }

    #[test]
    fn interpreter_is_found() {
        assert_eq!(is_static(&file(&[1, 2, 6])), Ok(true));
        assert_eq!(is_static(&file(&[1, 3, 6])), Ok(false));
        assert_eq!(is_static(&file(&[])), Ok(true));
    }

    #[test]
    fn other_and_cut_files_are_errors() {
        assert!(is_static(b"").is_err());
        assert!(is_static(b"#!/bin/sh\n").is_err());
        let whole = file(&[1, 2]);
        assert!(is_static(&whole[..whole.len() - 56]).is_err());
        let mut far = whole.clone();
        far[0x20..0x28].fill(0xff);
        assert!(is_static(&far).is_err());
    }

    /// This test runs in a program that needs the loader of the system.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn test_itself_is_not_static() {
        assert_eq!(is_static(&std::fs::read("/proc/self/exe").unwrap()), Ok(false));
    }
}
