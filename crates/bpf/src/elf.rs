//! ELF, as far as a BPF object needs it: 64 bits, little-endian, relocatable.

/// A file with its sections and symbols.
#[derive(Debug)]
pub(crate) struct Elf<'a> {
    pub(crate) sections: Vec<Section<'a>>,
    pub(crate) symbols: Vec<Symbol<'a>>,
}

/// A section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    kind: u32,
    /// Of a section of relocations: the section that they change.
    target: u32,
    pub(crate) data: &'a [u8],
}

/// A symbol: a name for a place in a section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a str,
    pub(crate) section: usize,
    pub(crate) value: u64,
}

/// A relocation: an instruction that needs the address of a symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relocation<'a> {
    /// In bytes, from the start of the section.
    pub(crate) offset: u64,
    pub(crate) kind: u32,
    pub(crate) symbol: Symbol<'a>,
}

const HEADER: usize = 64;
const SECTION_HEADER: usize = 64;
const SYMBOL: usize = 24;
const RELOCATION: usize = 16;
const MACHINE_BPF: u16 = 247;
const SYMTAB: u32 = 2;
const NOBITS: u32 = 8;
const REL: u32 = 9;

impl<'a> Elf<'a> {
    /// Reads a file; `None` if it is not such a file, or is cut off.
    pub(crate) fn parse(file: &'a [u8]) -> Option<Self> {
        let is_bpf = file.len() >= HEADER && file[..6] == *b"\x7fELF\x02\x01" && u16_at(file, 18)? == MACHINE_BPF;
        let start = usize::try_from(u64_at(file, 40)?).ok()?;
        let (count, names) = (usize::from(u16_at(file, 60)?), usize::from(u16_at(file, 62)?));
        if !is_bpf {
            return None;
        }
        let header = |at: usize| part(file, start.checked_add(at.checked_mul(SECTION_HEADER)?)?, SECTION_HEADER);
        let data = |header: &[u8]| match u32_at(header, 4)? {
            NOBITS => Some(&file[..0]),
            _ => part(file, usize::try_from(u64_at(header, 24)?).ok()?, usize::try_from(u64_at(header, 32)?).ok()?),
        };
        let names = data(header(names)?)?;
        let mut sections = vec![];
        let mut symbols = vec![];
        for at in 0..count {
            let header = header(at)?;
            let data = data(header)?;
            let (kind, link) = (u32_at(header, 4)?, u32_at(header, 40)?);
            sections.push(Section { name: text(names, u32_at(header, 0)?)?, kind, target: u32_at(header, 44)?, data });
            if kind == SYMTAB {
                symbols.push((data, link));
            }
        }
        let mut found = vec![];
        for (data, link) in symbols {
            let names = sections.get(usize::try_from(link).ok()?)?.data;
            for symbol in data.chunks_exact(SYMBOL) {
                let (name, section) = (text(names, u32_at(symbol, 0)?)?, usize::from(u16_at(symbol, 6)?));
                found.push(Symbol { name, section, value: u64_at(symbol, 8)? });
            }
        }
        Some(Self { sections, symbols: found })
    }

    /// The section called `name`, with its number.
    pub(crate) fn section(&self, name: &str) -> Option<(usize, Section<'a>)> {
        self.sections.iter().position(|section| section.name == name).map(|at| (at, self.sections[at]))
    }

    /// The relocations of the section with this number.
    pub(crate) fn relocations(&self, section: usize) -> Option<Vec<Relocation<'a>>> {
        let is_for = |it: &&Section<'_>| it.kind == REL && it.target as usize == section;
        let records = self.sections.iter().filter(is_for).flat_map(|it| it.data.chunks_exact(RELOCATION));
        records
            .map(|record| {
                let info = u64_at(record, 8)?;
                let symbol = *self.symbols.get(usize::try_from(info >> 32).ok()?)?;
                Some(Relocation { offset: u64_at(record, 0)?, kind: (info & 0xffff_ffff) as u32, symbol })
            })
            .collect()
    }
}

/// The part of `bytes` of `len` bytes at `start`.
pub(crate) fn part(bytes: &[u8], start: usize, len: usize) -> Option<&[u8]> {
    bytes.get(start..start.checked_add(len)?)
}

/// The text without its final zero at `start`.
pub(crate) fn text(names: &[u8], start: u32) -> Option<&str> {
    let rest = names.get(usize::try_from(start).ok()?..)?;
    std::str::from_utf8(&rest[..rest.iter().position(|&byte| byte == 0)?]).ok()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(part(bytes, at, 2)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(part(bytes, at, 4)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(part(bytes, at, 8)?.try_into().ok()?))
}
