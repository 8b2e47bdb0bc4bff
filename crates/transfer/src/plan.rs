//! What is still needed of each entry, by what is there.

use std::collections::BTreeMap;
use std::io;

use crate::folder::{About, Occupied, What};
use crate::frame::{SMALL, Step};
use crate::hash::{self, Digest, Value};
use crate::manifest::{Entry, Kind};
use crate::name::Leaf;
use crate::site::{ANOTHER, Existing, PartName, Site, Spot, Trouble, is_same_time};

/// Plans the entries in their order.
pub(crate) struct Planner<'a> {
    site: &'a Site,
    /// Groups of names that are one if the file system ignores case: the first of the group, and each of it; sorted.
    groups: Vec<(u32, u32)>,
    /// The same by entry.
    members: Vec<(u32, u32)>,
    /// The entry of a group whose name is there, or that gets it.
    winners: BTreeMap<u32, u32>,
    /// The names in the folder of the last group.
    listing: Option<(Option<u32>, Vec<u64>)>,
    /// Whether a text was among the entries.
    has_text: bool,
}

/// What is done about an entry.
pub(crate) struct Planned {
    /// What the sender is told.
    pub(crate) step: Step,
    pub(crate) want: Want,
    /// How many of the step's chunks are in the incomplete file; the others are in the file that is replaced.
    pub(crate) own: usize,
}

/// What the receiver does with what the sender sends of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Nothing is sent.
    Nothing,
    /// No file has the name.
    New,
    /// The file with the name is replaced.
    Replace,
    /// It is replaced if its content differs.
    ReplaceIfDiffers,
    /// It stays in any case.
    Compare,
    /// It is the beginning of a file that a crash has left, and is replaced.
    Repair,
}

impl Want {
    pub(crate) fn occupied(self) -> Occupied {
        match self {
            Self::Nothing | Self::New | Self::Compare => Occupied::Keep,
            Self::Replace | Self::ReplaceIfDiffers | Self::Repair => Occupied::Replace,
        }
    }
}

impl<'a> Planner<'a> {
    pub(crate) fn new(site: &'a Site) -> Self {
        let groups = site.manifest.twins();
        let mut members: Vec<_> = groups.iter().map(|(first, member)| (*member, *first)).collect();
        members.sort_unstable();
        Self { site, groups, members, winners: BTreeMap::new(), listing: None, has_text: false }
    }

    /// What is still needed of an entry, behind those for which `before` was decided. Makes the folder, if it is one.
    pub(crate) fn step(&mut self, index: u32, before: &[Want]) -> Result<Planned, Trouble> {
        let planned = self.try_step(index, before);
        match planned {
            Err(Trouble::Entry(reason)) => {
                if self.site.manifest.entry(index).kind == Kind::Folder {
                    self.site.refuse_folder(index);
                }
                Ok(planned_so(Step::Refused(reason), Want::Nothing))
            }
            planned => planned,
        }
    }

    fn try_step(&mut self, index: u32, before: &[Want]) -> Result<Planned, Trouble> {
        let site = self.site;
        let entry = site.manifest.entry(index);
        if entry.kind == Kind::Text {
            // It needs no place, but memory.
            return match std::mem::replace(&mut self.has_text, true) {
                false => Ok(planned_so(Step::All, Want::New)),
                true => Err(refused("a transfer has one text; send this one by itself")),
            };
        }
        entry.name.fits().map_err(|error| refused(error.to_string()))?;
        let spot = site.spot(entry.parent)?;
        if entry.name.is_reserved() && spot.has_shop {
            return Err(refused("the name is reserved for incomplete files here"));
        }
        let there = spot.folder.about(entry.name).map_err(|error| site.trouble("it cannot be looked up", error))?;
        if there.is_some() {
            self.check_twin(index, &entry, &spot)?;
        } else if site.manifest.asks.verifies {
            return Err(refused("it is not there"));
        }
        let nothing = || Ok(planned_so(Step::Nothing, Want::Nothing));
        match (entry.kind, there) {
            (Kind::Folder, None) => {
                site.make_folder(index, &spot)?;
                nothing()
            }
            (Kind::Folder, Some(About { what: What::Folder, .. })) => nothing(),
            (Kind::Folder, Some(_)) => Err(refused("something that is no folder has this name")),
            (Kind::Link(_), None) => Ok(planned_so(Step::Nothing, Want::New)),
            (Kind::Link(target), Some(About { what: What::Link, .. })) => {
                let there = spot.folder.target(entry.name);
                match there.map_err(|error| site.trouble("the link with this name cannot be read", error))? {
                    there if there == target => nothing(),
                    _ if site.manifest.asks.verifies => Err(refused("the link there leads elsewhere")),
                    _ if site.existing == Existing::Overwrite => Ok(planned_so(Step::Nothing, Want::Replace)),
                    _ => Err(refused("another link has this name; receive with --overwrite, or elsewhere")),
                }
            }
            (Kind::Link(_), Some(_)) => Err(refused("something that is no link has this name")),
            (Kind::Name(original), there) => {
                let stays = matches!(before.get(original as usize), Some(Want::Nothing | Want::Compare));
                self.name(original, stays, (&spot, entry.name), there)
            }
            (Kind::File { size, .. }, there) => self.file(index, &entry, size, &spot, there),
            (Kind::Stream | Kind::Text, None) => Ok(planned_so(Step::All, Want::New)),
            (Kind::Stream | Kind::Text, Some(About { what: What::File, .. }))
                if site.existing == Existing::Overwrite =>
            {
                Ok(planned_so(Step::All, Want::Replace))
            }
            (Kind::Stream | Kind::Text, Some(About { what: What::File, .. })) => Err(refused(ANOTHER)),
            (Kind::Stream | Kind::Text, Some(_)) => Err(refused("something other than a file has this name")),
        }
    }

    /// Another name of a file that comes before it, and that stays or is replaced.
    fn name(
        &self,
        original: u32,
        stays: bool,
        (spot, name): (&Spot, Leaf<'_>),
        there: Option<About>,
    ) -> Result<Planned, Trouble> {
        let site = self.site;
        let Some(there) = there else { return Ok(planned_so(Step::Nothing, Want::New)) };
        if there.what != What::File {
            return Err(refused("something other than a file has this name"));
        }
        let first = site.manifest.entry(original);
        let is_same = site.spot(first.parent).is_ok_and(|other| match other.folder.about(first.name) {
            Ok(Some(about)) if about.id == there.id && there.id != (0, 0) => true,
            // Where the file system has no such names, it is a copy.
            Ok(Some(About { what: What::File, size, .. })) if size == there.size && stays => {
                hash_of(&other, first.name, size)
                    .is_ok_and(|hash| hash_of(spot, name, size).is_ok_and(|own| own == hash))
            }
            _ => false,
        });
        match is_same {
            true if stays => Ok(planned_so(Step::Nothing, Want::Nothing)),
            _ if site.manifest.asks.verifies => {
                Err(refused(format!("it is another file there than {}", site.manifest.path(original))))
            }
            _ if site.existing == Existing::Overwrite => Ok(planned_so(Step::Nothing, Want::Replace)),
            _ => Err(refused(ANOTHER)),
        }
    }

    fn file(
        &self,
        index: u32,
        entry: &Entry<'_>,
        size: u64,
        spot: &Spot,
        there: Option<About>,
    ) -> Result<Planned, Trouble> {
        let Some(there) = there else { return Ok(self.rest(index, size, spot, None, Want::New)) };
        match there.what {
            What::File => {}
            What::Link => return Err(refused("a symbolic link has this name")),
            What::Folder | What::Other => return Err(refused("something other than a file has this name")),
        }
        let asks = self.site.manifest.asks;
        let is_same_time = is_same_time(there.modified, entry);
        let overwrites = self.site.existing == Existing::Overwrite && !asks.verifies;
        if there.size == size {
            if size == 0 || is_same_time && !asks.compares && !asks.verifies {
                return Ok(planned_so(Step::Nothing, Want::Nothing));
            }
            // The time may be one that the file system could not keep, so the content decides.
            let values = spot.folder.read(entry.name).and_then(|file| hash::file_values(&file, size, size));
            let whole = |values: &[Value]| Digest::of(size, values).ok_or_else(|| refused("it cannot be hashed"));
            return match (values, overwrites) {
                (Ok(values), true) => {
                    let hash = whole(&values)?;
                    Ok(self.rest(index, size, spot, Some((values, Some(hash))), Want::ReplaceIfDiffers))
                }
                (Ok(values), false) => Ok(planned_so(Step::SayIfDiffers(whole(&values)?), Want::Compare)),
                (Err(_), true) => Ok(self.rest(index, size, spot, None, Want::Replace)),
                (Err(error), false) => Err(self.site.trouble("the file with this name cannot be read", error)),
            };
        }
        if asks.verifies {
            return Err(refused("its size differs there"));
        }
        if overwrites {
            let file = if size <= SMALL { None } else { spot.folder.read(entry.name).ok() };
            let values = file.and_then(|file| hash::file_values(&file, size, there.size).ok());
            return Ok(self.rest(index, size, spot, values.map(|values| (values, None)), Want::Replace));
        }
        // A crash may have left a file that was renamed before its data was on the disk, with its time already set.
        if there.size < size && is_same_time {
            let hash = hash_of(spot, entry.name, there.size);
            let hash = hash.map_err(|error| self.site.trouble("the file with this name cannot be read", error))?;
            return Ok(planned_so(Step::SendIfBegins(there.size, hash), Want::Repair));
        }
        Err(refused(ANOTHER))
    }

    /// Requests what neither an earlier transfer has left nor the file has that is replaced, of which the values of chunks are given,
    /// and the hash if the file may be the same. What is there is hashed, and the sender compares it.
    fn rest(
        &self,
        index: u32,
        size: u64,
        spot: &Spot,
        replaced: Option<(Vec<Value>, Option<Value>)>,
        want: Want,
    ) -> Planned {
        let (mut others, hash) = replaced.unwrap_or_default();
        let mut values = vec![];
        if size > SMALL {
            let part = PartName::of(&self.site.manifest, index);
            // What cannot be read is sent again.
            values = kept(spot, part.leaf(), size).unwrap_or_default();
        } else {
            others.clear();
        }
        let own = values.len();
        values.extend(others.drain(..).skip(own));
        let step = match hash {
            Some(hash) => Step::SendIfDiffers(hash, values),
            None if values.is_empty() => Step::All,
            None => Step::From(values),
        };
        Planned { step, want, own }
    }

    /// Refuses an entry whose name is there because the file system takes it for that of another entry.
    fn check_twin(&mut self, index: u32, entry: &Entry<'_>, spot: &Spot) -> Result<(), Trouble> {
        let Ok(at) = self.members.binary_search_by_key(&index, |(member, _)| *member) else { return Ok(()) };
        let first = self.members[at].1;
        let cannot = |error| self.site.trouble("its folder cannot be listed", error);
        let listing = match self.listing.take() {
            Some((parent, listing)) if parent == entry.parent => listing,
            _ => spot.folder.listing().map_err(cannot)?,
        };
        let is_there = |name: Leaf<'_>| listing.binary_search(&name.number()).is_ok();
        let manifest = &self.site.manifest;
        let winner = match is_there(entry.name) {
            // Its own name is there, so it is another file than its twins.
            true => index,
            false => *self.winners.entry(first).or_insert_with(|| {
                let begin = self.groups.partition_point(|(group, _)| *group < first);
                let group =
                    self.groups[begin..].iter().take_while(|(group, _)| *group == first).map(|(_, member)| *member);
                group.into_iter().find(|member| is_there(manifest.entry(*member).name)).unwrap_or(first)
            }),
        };
        self.listing = Some((entry.parent, listing));
        match winner == index {
            true => Ok(()),
            false => Err(refused(format!(
                "{} has this name: the file system takes both for the same",
                manifest.path(winner)
            ))),
        }
    }
}

fn refused(reason: impl Into<String>) -> Trouble {
    Trouble::Entry(reason.into())
}

fn planned_so(step: Step, want: Want) -> Planned {
    Planned { step, want, own: 0 }
}

/// The hash of a file that is there.
fn hash_of(spot: &Spot, name: Leaf<'_>, size: u64) -> io::Result<Value> {
    hash::file(&spot.folder.read(name)?, size)
}

/// The hashes of the first chunks of an incomplete file.
fn kept(spot: &Spot, part: Leaf<'_>, size: u64) -> io::Result<Vec<Value>> {
    let Ok(shop) = spot.shop() else { return Ok(vec![]) };
    match shop.folder.about(part)? {
        // A file with another name would be changed under that name, too.
        Some(About { what: What::File, links: 1, size: there, .. }) => {
            hash::file_values(&shop.folder.read(part)?, size, there)
        }
        _ => Ok(vec![]),
    }
}
