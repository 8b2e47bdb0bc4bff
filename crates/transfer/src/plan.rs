//! What is still needed of each entry, by what is there.

use std::collections::BTreeMap;
use std::io;

use crate::folder::{About, Occupied, What};
use crate::frame::{SMALL, Step};
use crate::hash::{self, Value};
use crate::manifest::{Entry, Kind};
use crate::name::Leaf;
use crate::site::{Existing, PartName, Site, Spot, Trouble, is_same_time};

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

/// The reason for which a file that is there stays.
pub(crate) const ANOTHER: &str = "another file has this name; receive with --overwrite, or elsewhere";

impl<'a> Planner<'a> {
    pub(crate) fn new(site: &'a Site) -> Self {
        let groups = site.manifest.twins();
        let mut members: Vec<_> = groups.iter().map(|(first, member)| (*member, *first)).collect();
        members.sort_unstable();
        Self { site, groups, members, winners: BTreeMap::new(), listing: None }
    }

    /// What is still needed of an entry. Makes the folder, if it is one.
    pub(crate) fn step(&mut self, index: u32) -> Result<(Step, Want), Trouble> {
        let step = self.try_step(index);
        match step {
            Err(Trouble::Entry(reason)) => {
                if self.site.manifest.entry(index).kind == Kind::Folder {
                    self.site.refuse_folder(index);
                }
                Ok((Step::Refused(reason), Want::Nothing))
            }
            step => step,
        }
    }

    fn try_step(&mut self, index: u32) -> Result<(Step, Want), Trouble> {
        let site = self.site;
        let entry = site.manifest.entry(index);
        entry.name.fits().map_err(|error| refused(error.to_string()))?;
        let spot = site.spot(entry.parent)?;
        if entry.name.is_reserved() && spot.has_shop {
            return Err(refused("the name is reserved for incomplete files here"));
        }
        let there = spot.folder.about(entry.name).map_err(|error| site.trouble("it cannot be looked up", error))?;
        if there.is_some() {
            self.check_twin(index, &entry, &spot)?;
        }
        match (entry.kind, there) {
            (Kind::Folder, None) => {
                site.make_folder(&entry, &spot).map_err(|error| site.trouble("it cannot be created", error))?;
                Ok((Step::Nothing, Want::Nothing))
            }
            (Kind::Folder, Some(About { what: What::Folder, .. })) => Ok((Step::Nothing, Want::Nothing)),
            (Kind::Folder, Some(_)) => Err(refused("something that is no folder has this name")),
            (Kind::Link(_), None) => Ok((Step::Nothing, Want::New)),
            (Kind::Link(target), Some(About { what: What::Link, .. })) => {
                let there = spot.folder.target(entry.name);
                match there.map_err(|error| site.trouble("the link with this name cannot be read", error))? {
                    there if there == target => Ok((Step::Nothing, Want::Nothing)),
                    _ if site.existing == Existing::Overwrite => Ok((Step::Nothing, Want::Replace)),
                    _ => Err(refused("another link has this name; receive with --overwrite, or elsewhere")),
                }
            }
            (Kind::Link(_), Some(_)) => Err(refused("something that is no link has this name")),
            (Kind::File { size, .. }, there) => self.file(index, &entry, size, &spot, there),
        }
    }

    fn file(
        &self,
        index: u32,
        entry: &Entry<'_>,
        size: u64,
        spot: &Spot,
        there: Option<About>,
    ) -> Result<(Step, Want), Trouble> {
        let Some(there) = there else { return Ok((self.rest(index, size, spot), Want::New)) };
        match there.what {
            What::File => {}
            What::Link => return Err(refused("a symbolic link has this name")),
            What::Folder | What::Other => return Err(refused("something other than a file has this name")),
        }
        let is_same_time = is_same_time(there.modified, entry);
        let overwrites = self.site.existing == Existing::Overwrite;
        if there.size == size {
            if size == 0 || is_same_time && !self.site.manifest.compares {
                return Ok((Step::Nothing, Want::Nothing));
            }
            // The time may be one that the file system could not keep, so the content decides.
            return match (hash_of(spot, entry.name, size), overwrites) {
                (Ok(hash), true) => Ok((Step::SendIfDiffers(hash), Want::ReplaceIfDiffers)),
                (Ok(hash), false) => Ok((Step::SayIfDiffers(hash), Want::Compare)),
                (Err(_), true) => Ok((self.rest(index, size, spot), Want::Replace)),
                (Err(error), false) => Err(self.site.trouble("the file with this name cannot be read", error)),
            };
        }
        if overwrites {
            return Ok((self.rest(index, size, spot), Want::Replace));
        }
        // A crash may have left a file that was renamed before its data was on the disk, with its time already set.
        if there.size < size && is_same_time {
            let hash = hash_of(spot, entry.name, there.size);
            let hash = hash.map_err(|error| self.site.trouble("the file with this name cannot be read", error))?;
            return Ok((Step::SendIfBegins(there.size, hash), Want::Repair));
        }
        Err(refused(ANOTHER))
    }

    /// Requests what an earlier transfer has not left. What it has left is hashed, and the sender compares it.
    fn rest(&self, index: u32, size: u64, spot: &Spot) -> Step {
        if size <= SMALL {
            return Step::All;
        }
        let part = PartName::of(&self.site.manifest, index);
        // What cannot be read is sent again.
        match kept(spot, part.leaf(), size) {
            Ok(values) if !values.is_empty() => Step::From(values),
            _ => Step::All,
        }
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

/// The hash of a file that is there.
fn hash_of(spot: &Spot, name: Leaf<'_>, size: u64) -> io::Result<Value> {
    hash::file(&spot.folder.read(name)?, size)
}

/// The hashes of the first chunks of an incomplete file.
fn kept(spot: &Spot, part: Leaf<'_>, size: u64) -> io::Result<Vec<Value>> {
    match spot.shop.folder.about(part)? {
        // A file with another name would be changed under that name, too.
        Some(About { what: What::File, links: 1, size: there, .. }) => {
            hash::file_values(&spot.shop.folder.read(part)?, size, there)
        }
        _ => Ok(vec![]),
    }
}
