//! BTF: the types of the kernel, or of an object, by which fields are found by their names.

use crate::elf::{part, text, u32_at};

/// The types of a kernel or of an object.
#[derive(Debug)]
pub(crate) struct Btf<'a> {
    types: Vec<Type<'a>>,
    strings: &'a [u8],
}

/// A type; the record of the format, and what follows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type<'a> {
    name: u32,
    info: u32,
    size_or_type: u32,
    rest: &'a [u8],
}

/// A field of a struct or union.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) name: &'a str,
    pub(crate) type_id: u32,
    pub(crate) bit_offset: u32,
    /// Zero if it is no bit-field.
    pub(crate) bits: u32,
}

/// A place in a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) bit_offset: u32,
    /// Zero if it is no bit-field.
    pub(crate) bits: u32,
    /// The size of its type in bytes.
    pub(crate) size: u32,
    /// Whether it is a number, and not a struct, an array or a pointer.
    pub(crate) is_number: bool,
    pub(crate) is_signed: bool,
}

/// A step from a type to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// The field of this name.
    Field(&'a str),
    /// The element of an array.
    Element(u32),
}

const MAGIC: u32 = 0xeb9f;
const HEADER: usize = 24;
const INT: u32 = 1;
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;
/// A bound for chains of typedefs and for nested structs in damaged data.
const DEPTH: usize = 32;

impl<'a> Btf<'a> {
    /// Reads the format; `None` if the data is damaged.
    pub(crate) fn parse(data: &'a [u8]) -> Option<Self> {
        if u32_at(data, 0)? & 0xffff != MAGIC {
            return None;
        }
        let word = |at| u32_at(data, at).and_then(|word| usize::try_from(word).ok());
        let header = word(4)?.max(HEADER);
        let mut records = part(data, header.checked_add(word(8)?)?, word(12)?)?;
        let strings = part(data, header.checked_add(word(16)?)?, word(20)?)?;
        // Type 0 is `void`.
        let mut types = vec![Type { name: 0, info: 0, size_or_type: 0, rest: &[] }];
        while !records.is_empty() {
            let info = u32_at(records, 4)?;
            let count = (info & 0xffff) as usize;
            let len = match (info >> 24) & 0x1f {
                INT | VAR | DECL_TAG => 4,
                ARRAY => 12,
                STRUCT | UNION | DATASEC | ENUM64 => 12 * count,
                ENUM | FUNC_PROTO => 8 * count,
                _ => 0,
            };
            let rest = part(records, 12, len)?;
            types.push(Type { name: u32_at(records, 0)?, info, size_or_type: u32_at(records, 8)?, rest });
            records = &records[12 + len..];
        }
        Some(Self { types, strings })
    }

    /// The struct called `name`, with its number.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        let is_it = |found: &Type<'_>| found.kind() == STRUCT && self.text(found.name) == Some(name);
        self.types.iter().position(is_it).map(|at| at as u32)
    }

    /// The name of a type behind its qualifiers.
    pub(crate) fn name(&self, id: u32) -> Option<&'a str> {
        self.text(self.plain(id)?.1.name)
    }

    /// The size of a type in bytes.
    pub(crate) fn size(&self, id: u32) -> Option<u32> {
        let (_, found) = self.plain(id)?;
        match found.kind() {
            PTR => Some(8),
            ARRAY => u32_at(found.rest, 8)?.checked_mul(self.size(u32_at(found.rest, 0)?)?),
            INT | STRUCT | UNION | ENUM | ENUM64 => Some(found.size_or_type),
            _ => None,
        }
    }

    /// The fields of a struct or union, in order.
    pub(crate) fn members(&self, id: u32) -> Option<Vec<Member<'a>>> {
        let (_, found) = self.plain(id)?;
        if ![STRUCT, UNION].contains(&found.kind()) {
            return None;
        }
        let has_bits = found.info >> 31 == 1;
        let member = |record: &'a [u8]| {
            let offset = u32_at(record, 8)?;
            let (bit_offset, bits) = if has_bits { (offset & 0xff_ffff, offset >> 24) } else { (offset, 0) };
            Some(Member { name: self.text(u32_at(record, 0)?)?, type_id: u32_at(record, 4)?, bit_offset, bits })
        };
        found.rest.chunks_exact(12).map(member).collect()
    }

    /// The number of arguments of the function that a pointer of this type points to.
    pub(crate) fn arguments(&self, id: u32) -> Option<u32> {
        let (_, pointer) = self.plain(id).filter(|(_, it)| it.kind() == PTR)?;
        let (_, function) = self.plain(pointer.size_or_type).filter(|(_, it)| it.kind() == FUNC_PROTO)?;
        Some(function.info & 0xffff)
    }

    /// The steps that an access string of this object, such as `0:3:1`, takes from type `id`.
    pub(crate) fn steps(&self, id: u32, access: &str) -> Option<Vec<Step<'a>>> {
        let mut steps = vec![];
        let mut numbers = access.split(':').map(|number| number.parse::<u32>());
        // The first number is an index from the pointer itself.
        if numbers.next()?.ok()? != 0 {
            return None;
        }
        let mut id = id;
        for number in numbers {
            let number = number.ok()?;
            if self.plain(id)?.1.kind() == ARRAY {
                id = u32_at(self.plain(id)?.1.rest, 0)?;
                steps.push(Step::Element(number));
            } else {
                let member = *self.members(id)?.get(number as usize)?;
                id = member.type_id;
                steps.push(Step::Field(member.name));
            }
        }
        Some(steps)
    }

    /// The place to which the steps lead from type `id`; `None` if a field is missing.
    pub(crate) fn place(&self, id: u32, steps: &[Step<'_>]) -> Option<Place> {
        let (mut id, mut bit_offset, mut bits) = (id, 0, 0);
        for step in steps {
            match step {
                Step::Field(name) => {
                    let member = self.field(id, name, DEPTH)?;
                    (id, bits) = (member.type_id, member.bits);
                    bit_offset += member.bit_offset;
                }
                Step::Element(index) => {
                    id = u32_at(self.plain(id).filter(|(_, it)| it.kind() == ARRAY)?.1.rest, 0)?;
                    bit_offset += 8 * index * self.size(id)?;
                }
            }
        }
        let (_, found) = self.plain(id)?;
        let is_number = found.kind() == INT;
        let is_signed = is_number && (u32_at(found.rest, 0)? >> 24) & 1 == 1;
        Some(Place { bit_offset, bits, size: self.size(id)?, is_number, is_signed })
    }

    /// The field called `name` of a struct or union, or of an unnamed part of it.
    fn field(&self, id: u32, name: &str, depth: usize) -> Option<Member<'a>> {
        let members = self.members(id)?;
        if let Some(member) = members.iter().find(|member| member.name == name) {
            return Some(*member);
        }
        let depth = depth.checked_sub(1)?;
        members.iter().filter(|member| member.name.is_empty()).find_map(|part| {
            let member = self.field(part.type_id, name, depth)?;
            Some(Member { bit_offset: part.bit_offset + member.bit_offset, ..member })
        })
    }

    /// The type behind typedefs and qualifiers.
    fn plain(&self, id: u32) -> Option<(u32, Type<'a>)> {
        let mut id = id;
        for _ in 0..DEPTH {
            let found = *self.types.get(usize::try_from(id).ok()?)?;
            match found.kind() {
                TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => id = found.size_or_type,
                _ => return Some((id, found)),
            }
        }
        None
    }

    pub(crate) fn text(&self, at: u32) -> Option<&'a str> {
        text(self.strings, at)
    }
}

impl Type<'_> {
    fn kind(&self) -> u32 {
        (self.info >> 24) & 0x1f
    }
}
