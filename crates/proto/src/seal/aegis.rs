//! AEGIS-128L ([aegis-aead] sec. 2), implemented by the crate `aegis`: its C code selects the instructions of the machine when it runs.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use self::absent::Key;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use self::built::Key;

/// Whether it is built for this kind of machine.
pub(super) const IS_BUILT: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod built {
    use aegis::aegis128l::Aegis128L;
    use zeroize::Zeroize;

    use crate::seal::noise::TAG;

    /// A key. It has no schedule.
    #[derive(Zeroize)]
    pub(in crate::seal) struct Key([u8; 16]);

    impl Key {
        /// The key that these bytes begin with.
        pub(in crate::seal) fn new(bytes: &[u8; 32]) -> Self {
            Self(*bytes.first_chunk().expect("it is shorter"))
        }

        pub(in crate::seal) fn seal(&self, nonce: [u8; 12], header: &[u8], plain: &mut [u8]) -> [u8; TAG] {
            self.state(nonce).encrypt_in_place(plain, header)
        }

        pub(in crate::seal) fn open(&self, nonce: [u8; 12], header: &[u8], sealed: &mut [u8]) -> bool {
            let Some((text, tag)) = sealed.split_last_chunk_mut() else { return false };
            self.state(nonce).decrypt_in_place(text, tag, header).is_ok()
        }

        /// The cipher's nonce has 16 bytes: ours, then zeros.
        fn state(&self, nonce: [u8; 12]) -> Aegis128L<TAG> {
            let mut whole = [0; 16];
            whole[..12].copy_from_slice(&nonce);
            Aegis128L::new(&self.0, &whole)
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod absent {
    use crate::seal::noise::TAG;

    /// There is none: the cipher is neither offered nor accepted.
    pub(in crate::seal) enum Key {}

    impl Key {
        pub(in crate::seal) fn new(_: &[u8; 32]) -> Self {
            unreachable!("it is not negotiated")
        }

        pub(in crate::seal) fn seal(&self, _: [u8; 12], _: &[u8], _: &mut [u8]) -> [u8; TAG] {
            match *self {}
        }

        pub(in crate::seal) fn open(&self, _: [u8; 12], _: &[u8], _: &mut [u8]) -> bool {
            match *self {}
        }

        pub(in crate::seal) fn zeroize(&mut self) {
            match *self {}
        }
    }
}

#[cfg(test)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tests {
    use super::*;

    fn hex<const N: usize>(text: &str) -> [u8; N] {
        std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
    }

    fn key() -> Key {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&hex::<16>("10010000000000000000000000000000"));
        Key::new(&bytes)
    }

    const NONCE: &str = "100002000000000000000000";

    /// [aegis-aead] sec. A.2, test vectors 1, 2 and 4: their nonces end with zeros, as ours do.
    #[test]
    fn aegis_is_that_of_its_specification() {
        let cases = [
            (
                "",
                "00000000000000000000000000000000",
                "c1c0e58bd913006feba00f4b3cc3594e",
                "abe0ece80c24868a226a35d16bdae37a",
            ),
            ("", "", "", "c2b879a67def9d74e6c14f708bbcc9b4"),
            (
                "0001020304050607",
                "000102030405060708090a0b0c0d",
                "79d94593d8c2119d7e8fd9b8fc77",
                "5c04b3dba849b2701effbe32c7f0fab7",
            ),
        ];
        for (header, plain, sealed, tag) in cases {
            let [header, plain, sealed] = [header, plain, sealed]
                .map(|text| (0..text.len() / 2).map(|at| hex::<1>(&text[2 * at..])[0]).collect::<Vec<_>>());
            let mut text = plain.clone();
            assert_eq!(key().seal(hex(NONCE), &header, &mut text), hex(tag));
            assert_eq!(text, sealed);
            text.extend(hex::<16>(tag));
            assert!(key().open(hex(NONCE), &header, &mut text));
            assert_eq!(text[..plain.len()], plain);
        }
    }

    #[test]
    fn aegis_opens_nothing_that_was_changed() {
        let mut sealed = vec![7; 40];
        let tag = key().seal(hex(NONCE), b"header", &mut sealed);
        sealed.extend(tag);
        for place in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[place] ^= 1;
            assert!(!key().open(hex(NONCE), b"header", &mut forged), "{place}");
        }
        assert!(!key().open(hex(NONCE), b"Header", &mut sealed.clone()));
        assert!(!key().open(hex(NONCE), b"header", &mut [0; 15]));
        assert!(key().open(hex(NONCE), b"header", &mut sealed));
    }
}
