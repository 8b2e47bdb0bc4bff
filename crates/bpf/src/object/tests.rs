use super::*;
use crate::{Law, Settings};

const OBJECT: &[u8] = include_bytes!("../../object/tcp.bpf.o");
const ANABRANCH: &[u8] = include_bytes!("../../object/anabranch.bpf.o");

/// A field of 1 bit at bit 13 of words of 1 byte: byte 1, bits 64 − 6 to the left, 63 to the right. One of 4 bits at bit 30 of words of 4 bytes
/// crosses a word, so it is read as 8 bytes from 0.
#[test]
fn bit_field_read_as_the_least_word_around_it() {
    let answers = |bit_offset, bits, size| {
        let place = Place { bit_offset, bits, size, is_number: true, is_signed: false };
        [0, 1, 2, 3, 4, 5].map(|question| asked(question, place))
    };
    assert_eq!(answers(13, 1, 1), [1, 1, 1, 0, 58, 63].map(Some));
    assert_eq!(answers(30, 4, 4), [0, 8, 1, 0, 30, 60].map(Some));
    assert_eq!(answers(64, 0, 4), [8, 4, 1, 0, 32, 32].map(Some));
}

#[test]
fn objects_fit_types_of_their_own() {
    let shared = ["release", "init", "ssthresh", "set_state", "undo_cwnd", "cwnd_event"];
    for (law, file, own) in [
        (Law::Fast, OBJECT, &["pkts_acked", "cong_avoid"][..]),
        (Law::Anabranch, ANABRANCH, &["cwnd_event_tx_start", "cong_control"]),
    ] {
        let object = Object::parse(file).expect("the object is whole");
        let (_, btf) = object.elf.section(".BTF").expect("it has types");
        let types = Btf::parse(btf.data).expect("they are whole");
        let programs = object.programs(&types).expect("an object fits its own types");
        let functions: Vec<&str> =
            programs.iter().filter(|it| it.kind == Kind::StructOps).map(|it| it.name.as_str()).collect();
        assert_eq!(functions, [&shared[..], own].concat(), "{law}");
        assert_eq!(object.settings_size(), Some(Settings::of(law).to_bytes().len()), "{law}");
        assert_eq!(object.license(), Some(&b"Dual MIT/GPL\0"[..]));
    }
}

#[test]
fn kernel_without_the_types_is_named_as_unfit() {
    let object = Object::parse(OBJECT).expect("the object is whole");
    // A header without types.
    let empty = [0x0001_eb9f_u32, 24, 0, 0, 0, 1].map(u32::to_le_bytes).concat();
    let empty = [empty, vec![0]].concat();
    let refused = object.programs(&Btf::parse(&empty).expect("whole")).expect_err("no types");
    assert!(matches!(&refused, Unfit::NoField(name) if name.contains("tcp_sock")), "{refused}");
}

#[test]
fn cut_object_is_refused_without_panic() {
    for len in (0..OBJECT.len()).step_by(97) {
        if let Ok(object) = Object::parse(&OBJECT[..len]) {
            panic!("{len} of {} bytes are no object: {object:?}", OBJECT.len());
        }
    }
}

/// The types of a kernel, for which those of the object stand: in them a field has another name of the same length.
fn types_without(field: &str) -> Vec<u8> {
    let object = Object::parse(ANABRANCH).expect("the object is whole");
    let mut types = object.elf.section(".BTF").expect("it has types").1.data.to_vec();
    let name = format!("\0{field}\0").into_bytes();
    let at = types.windows(name.len()).position(|part| part == name).expect("a field of this name");
    types[at + 1] = b'X';
    types
}

/// Without MPTCP or IPv6 the law fits all the same: nothing leads to what would read the field. Without a field that it needs, it does not.
#[test]
fn field_that_is_asked_for_may_be_missing() {
    let object = Object::parse(ANABRANCH).expect("the object is whole");
    let calls_of_nothing = |field| {
        let types = types_without(field);
        let programs = object.programs(&Btf::parse(&types).expect("whole"))?;
        let all = programs.iter().flat_map(|it| it.instructions.chunks_exact(INSTRUCTION));
        Ok::<_, Unfit>(all.filter(|it| **it == NEVER).count())
    };
    assert!(calls_of_nothing("is_mptcp").expect("it fits") > 0);
    assert!(calls_of_nothing("skc_v6_daddr").expect("it fits") > 0);
    let refused = calls_of_nothing("snd_ssthresh").expect_err("the law needs it");
    assert!(matches!(&refused, Unfit::NoField(name) if name.contains("snd_ssthresh")), "{refused}");
}
