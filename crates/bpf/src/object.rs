//! A compiled object: its programs, whose accesses to the kernel's structs are adapted to the running kernel (CO-RE), and its maps.

use std::collections::BTreeMap;
use std::fmt;

use crate::btf::{Btf, Place};
use crate::elf::{Elf, Relocation, part, u32_at};

/// The settings, a variable of C: a map of one element.
pub(crate) const SETTINGS: &str = ".data.settings";
/// The folder, so to speak, of the functions of `tcp_congestion_ops`.
const STRUCT_OPS: &str = "struct_ops/";
const MAPS: &str = "maps";

/// A compiled object, not adapted to any kernel.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    elf: Elf<'a>,
    btf: Btf<'a>,
    /// Fields of structs, by section.
    fields: BTreeMap<&'a str, Vec<Field<'a>>>,
    /// A struct of which nothing is read, although the kernel has it.
    without: Option<&'static str>,
}

/// An instruction that depends on where a field of a struct lies.
#[derive(Clone, Copy, Debug)]
struct Field<'a> {
    /// In bytes, from the start of the section.
    offset: u32,
    type_id: u32,
    access: &'a str,
    /// What the instruction asks of the field.
    asked: u32,
}

impl Field<'_> {
    /// Whether this instruction asks if the kernel has what the other one uses.
    fn is_question_about(&self, other: &Self) -> bool {
        self.asked == EXISTS && self.type_id == other.type_id && other.access.starts_with(self.access)
    }
}

/// A program of a section.
#[derive(Debug)]
pub(crate) struct Program {
    /// The name of its section without `struct_ops/`.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) instructions: Vec<u8>,
    /// Instructions that need a map.
    pub(crate) maps: Vec<MapUse>,
}

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A function of `tcp_congestion_ops`.
    StructOps,
    /// One that a test calls.
    Syscall,
    /// One that the sockets of a control group call.
    SockOps,
}

/// An instruction that loads a map, or the address of its only element.
#[derive(Clone, Debug)]
pub(crate) struct MapUse {
    /// In bytes, from the start of the program.
    pub(crate) offset: usize,
    pub(crate) map: String,
    /// Whether the address of the element is loaded.
    pub(crate) is_value: bool,
}

/// The numbers of a map (`struct ab_map`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapShape {
    pub(crate) kind: u32,
    pub(crate) key_size: u32,
    pub(crate) value_size: u32,
    pub(crate) entries: u32,
}

/// Why an object does not fit a kernel.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The object is damaged: where.
    Damaged(&'static str),
    /// The kernel has no such field.
    NoField(String),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(place) => write!(f, "the compiled laws are damaged ({place})"),
            Self::NoField(name) => write!(f, "this kernel has no {name}, which the laws use"),
        }
    }
}

impl std::error::Error for Unfit {}

impl<'a> Object<'a> {
    /// Reads an object.
    pub(crate) fn parse(file: &'a [u8]) -> Result<Self, Unfit> {
        let elf = Elf::parse(file).ok_or(Unfit::Damaged("ELF"))?;
        let section = |name| elf.section(name).map(|(_, section)| section.data).ok_or(Unfit::Damaged(name));
        let btf = Btf::parse(section(".BTF")?).ok_or(Unfit::Damaged(".BTF"))?;
        let fields = fields(section(".BTF.ext")?, &btf).ok_or(Unfit::Damaged(".BTF.ext"))?;
        Ok(Self { elf, btf, fields, without: None })
    }

    /// The same, whose programs read nothing of a struct.
    pub(crate) fn without(self, structure: &'static str) -> Self {
        Self { without: Some(structure), ..self }
    }

    /// The maps by their names, without [`SETTINGS`].
    pub(crate) fn maps(&self) -> Result<Vec<(&'a str, MapShape)>, Unfit> {
        let (number, section) = self.elf.section(MAPS).ok_or(Unfit::Damaged(MAPS))?;
        let symbols = self.elf.symbols.iter().filter(|it| it.section == number && !it.name.is_empty());
        let shape = |at: usize| {
            let word = |index: usize| u32_at(section.data, at + 4 * index);
            Some(MapShape { kind: word(0)?, key_size: word(1)?, value_size: word(2)?, entries: word(3)? })
        };
        let shapes = symbols.map(|it| Some((it.name, shape(usize::try_from(it.value).ok()?)?)));
        shapes.collect::<Option<_>>().ok_or(Unfit::Damaged(MAPS))
    }

    /// The size of the settings in bytes.
    pub(crate) fn settings_size(&self) -> Option<usize> {
        self.elf.section(SETTINGS).map(|(_, section)| section.data.len())
    }

    /// The licence that the programs state.
    pub(crate) fn license(&self) -> Option<&'a [u8]> {
        self.elf.section("license").map(|(_, section)| section.data)
    }

    /// The programs, adapted to a kernel.
    pub(crate) fn programs(&self, kernel: &Btf<'_>) -> Result<Vec<Program>, Unfit> {
        let mut programs = vec![];
        for (number, section) in self.elf.sections.iter().enumerate() {
            let (kind, name) = match section.name.strip_prefix(STRUCT_OPS) {
                Some(name) => (Kind::StructOps, name),
                None if section.name == "syscall" => (Kind::Syscall, section.name),
                None if section.name == "sockops" => (Kind::SockOps, section.name),
                None => continue,
            };
            let mut instructions = section.data.to_vec();
            let fields = self.fields.get(section.name).map_or(&[][..], Vec::as_slice);
            for field in fields {
                let may_miss = fields.iter().any(|other| other.is_question_about(field));
                self.adapt(&mut instructions, field, may_miss, kernel)?;
            }
            let relocations = self.elf.relocations(number).ok_or(Unfit::Damaged("relocations"))?;
            let uses = relocations.iter().map(|relocation| self.map_use(&mut instructions, relocation));
            let maps = uses.collect::<Option<_>>().ok_or(Unfit::Damaged("relocations"))?;
            programs.push(Program { name: name.to_owned(), kind, instructions, maps });
        }
        Ok(programs)
    }

    /// Adapts an instruction to a kernel, which may miss the field if the program asks for that.
    fn adapt(&self, instructions: &mut [u8], field: &Field<'_>, may_miss: bool, kernel: &Btf<'_>) -> Result<(), Unfit> {
        let name = self.btf.name(field.type_id).ok_or(Unfit::Damaged("a struct"))?;
        let steps = self.btf.steps(field.type_id, field.access).ok_or(Unfit::Damaged("an access"))?;
        let at = field.offset as usize;
        let instruction = instructions.get_mut(at..at + INSTRUCTION).ok_or(Unfit::Damaged("a place"))?;
        let is_open = self.without != Some(name);
        let found = kernel.find(name).filter(|_| is_open).and_then(|id| kernel.place(id, &steps));
        let Some(place) = found else {
            if !may_miss {
                return Err(Unfit::NoField(format!("{name}: {steps:?}")));
            }
            match instruction[0] & 0x07 {
                LDX | ST | STX => instruction.copy_from_slice(&NEVER),
                _ => instruction[4..8].fill(0),
            }
            return Ok(());
        };
        let here = self.btf.find(name).and_then(|id| self.btf.place(id, &steps)).ok_or(Unfit::Damaged("a field"))?;
        // A field of another size needs another instruction.
        if here.is_number && place.bits == 0 && place.size != here.size {
            return Err(Unfit::NoField(format!("{name}: {steps:?} of {} bytes", here.size)));
        }
        let value = asked(field.asked, place).ok_or(Unfit::Damaged("a question"))?;
        match instruction[0] & 0x07 {
            LDX | ST | STX => {
                let offset = i16::try_from(value).map_err(|_| Unfit::NoField(format!("{name} of this size")))?;
                instruction[2..4].copy_from_slice(&offset.to_le_bytes());
            }
            _ => instruction[4..8].copy_from_slice(&value.to_le_bytes()),
        }
        Ok(())
    }

    /// The map that a relocation names. The offset of a variable in its section goes into the second half of the instruction.
    fn map_use(&self, instructions: &mut [u8], relocation: &Relocation<'_>) -> Option<MapUse> {
        let offset = usize::try_from(relocation.offset).ok()?;
        let section = self.elf.sections.get(relocation.symbol.section)?.name;
        let is_wide = part(instructions, offset, 2 * INSTRUCTION)?[0] == LOAD_WIDE;
        if relocation.kind != WIDE || !is_wide {
            return None;
        }
        match section {
            MAPS => Some(MapUse { offset, map: relocation.symbol.name.to_owned(), is_value: false }),
            SETTINGS => {
                let addend = u32_at(instructions, offset + 4)?;
                let start = u32::try_from(relocation.symbol.value).ok()?.checked_add(addend)?;
                instructions[offset + 12..offset + 16].copy_from_slice(&start.to_le_bytes());
                Some(MapUse { offset, map: SETTINGS.to_owned(), is_value: true })
            }
            _ => None,
        }
    }
}

/// The bytes of an instruction.
const INSTRUCTION: usize = 8;
/// The relocation of a wide instruction (`R_BPF_64_64`).
const WIDE: u32 = 1;
const LOAD_WIDE: u8 = 0x18;
const LDX: u8 = 1;
const ST: u8 = 2;
const STX: u8 = 3;
/// `BPF_CORE_FIELD_EXISTS`.
const EXISTS: u32 = 2;
/// A call of a function that no kernel has, where a missing field would be read: the verifier accepts it only if nothing leads there.
const NEVER: [u8; INSTRUCTION] = [0x85, 0, 0, 0, 0xff, 0xff, 0xff, 0x0f];

/// The answer to what an instruction asks of a field (`enum bpf_core_relo_kind`).
fn asked(asked: u32, place: Place) -> Option<u32> {
    let (mut size, bit_offset) = (place.size, place.bit_offset);
    let bits = if place.bits == 0 { 8 * size } else { place.bits };
    let mut offset = bit_offset / 8;
    if place.bits > 0 {
        // The least aligned word that holds all bits.
        offset = bit_offset / 8 / size * size;
        while bit_offset + bits - 8 * offset > 8 * size {
            size *= 2;
            offset = bit_offset / 8 / size * size;
        }
    }
    match asked {
        0 => Some(offset),
        1 => Some(size),
        2 => Some(1),
        3 => Some(u32::from(place.is_signed)),
        4 => 64_u32.checked_sub(bit_offset + bits - 8 * offset),
        5 => 64_u32.checked_sub(bits),
        _ => None,
    }
}

/// Reads the part of `.BTF.ext` about fields.
fn fields<'a>(data: &[u8], btf: &Btf<'a>) -> Option<BTreeMap<&'a str, Vec<Field<'a>>>> {
    let word = |at| u32_at(data, at);
    let start = word(4)?.checked_add(word(24)?)?;
    let mut rest = part(data, usize::try_from(start).ok()?, usize::try_from(word(28)?).ok()?)?;
    let mut found = BTreeMap::new();
    if rest.is_empty() {
        return Some(found);
    }
    let size = usize::try_from(u32_at(rest, 0)?).ok().filter(|&size| size >= 16)?;
    rest = &rest[4..];
    while !rest.is_empty() {
        let (section, count) = (btf.text(u32_at(rest, 0)?)?, usize::try_from(u32_at(rest, 4)?).ok()?);
        let records = part(rest, 8, size.checked_mul(count)?)?;
        let field = |record| {
            let word = |at| u32_at(record, at);
            Some(Field { offset: word(0)?, type_id: word(4)?, access: btf.text(word(8)?)?, asked: word(12)? })
        };
        found.insert(section, records.chunks_exact(size).map(field).collect::<Option<_>>()?);
        rest = &rest[8 + records.len()..];
    }
    Some(found)
}

#[cfg(test)]
mod tests;
