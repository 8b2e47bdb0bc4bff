//! The order in which files become durable and get their names: their data, then the name, then the folder with the name, then the
//! confirmation. Whatever happens in between, a name stands for a whole file, and what is confirmed is there.
//!
//! A sync costs about the same for one file as for hundreds. So files that are ready meanwhile wait for the next one, and the sync
//! for the names of some files is that for the data of the next ones.

/// What a commit does with files, and the disk that they are on.
pub(crate) trait Disk {
    /// A file that is ready for its name.
    type File;
    /// What is reported of a file.
    type Report;
    /// Why files are not durable.
    type Error;

    /// Makes the data of `ready` files durable, and the names of `placed` ones.
    fn sync(&mut self, ready: &[Self::File], placed: &[Self::File]) -> Result<(), Self::Error>;

    /// Gives a file its name.
    fn place(&mut self, file: &Self::File) -> Result<(), Self::Report>;

    /// The confirmation of a file.
    fn confirm(&mut self, file: Self::File) -> Self::Report;

    /// The report of a file that was not made durable, for this reason.
    fn fail(&mut self, file: Self::File, why: &Self::Error) -> Self::Report;
}

/// One turn: makes all durable, confirms the files that have their names, and gives the ready ones theirs. Returns the reports, and
/// the files to confirm in the next turn.
pub(crate) fn turn<D: Disk>(disk: &mut D, ready: Vec<D::File>, placed: Vec<D::File>) -> (Vec<D::Report>, Vec<D::File>) {
    let mut reports = vec![];
    if let Err(why) = disk.sync(&ready, &placed) {
        reports.extend(placed.into_iter().chain(ready).map(|file| disk.fail(file, &why)));
        return (reports, vec![]);
    }
    reports.extend(placed.into_iter().map(|file| disk.confirm(file)));
    let mut next = Vec::with_capacity(ready.len());
    for file in ready {
        match disk.place(&file) {
            Ok(()) => next.push(file),
            Err(report) => reports.push(report),
        }
    }
    (reports, next)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A disk that loses its power after some operations, with what is in memory and what is durable.
    #[derive(Clone, Default)]
    struct Model {
        left: usize,
        data: BTreeSet<u32>,
        data_durable: BTreeSet<u32>,
        names: BTreeSet<u32>,
        names_durable: BTreeSet<u32>,
        confirmed: BTreeSet<u32>,
    }

    impl Model {
        fn is_on(&mut self) -> bool {
            self.left = self.left.saturating_sub(1);
            self.left > 0
        }

        /// The worst that a power cut leaves: data that was not synced is lost, names may be there or not.
        fn check(&self) {
            for name in &self.names {
                assert!(self.data_durable.contains(name), "{name} has its name before its data is durable");
            }
            for name in &self.confirmed {
                assert!(self.names_durable.contains(name), "{name} is confirmed before its name is durable");
            }
        }
    }

    impl Disk for Model {
        type File = u32;
        type Report = Result<u32, ()>;
        type Error = ();

        fn sync(&mut self, ready: &[u32], placed: &[u32]) -> Result<(), ()> {
            // A sync that ends early has written a part.
            for file in ready {
                if !self.is_on() {
                    return Err(());
                }
                assert!(self.data.contains(file));
                self.data_durable.insert(*file);
            }
            for file in placed {
                if !self.is_on() {
                    return Err(());
                }
                if self.names.contains(file) {
                    self.names_durable.insert(*file);
                }
            }
            Ok(())
        }

        fn place(&mut self, file: &u32) -> Result<(), Self::Report> {
            if !self.is_on() || *file == REFUSED {
                return Err(Err(()));
            }
            self.names.insert(*file);
            Ok(())
        }

        fn confirm(&mut self, file: u32) -> Self::Report {
            if self.is_on() {
                self.confirmed.insert(file);
            }
            Ok(file)
        }

        fn fail(&mut self, _: u32, (): &()) -> Self::Report {
            Err(())
        }
    }

    /// A name that the file system refuses.
    const REFUSED: u32 = 7;

    /// Batches of files of all sizes, with the power cut after each possible operation.
    #[test]
    fn interrupted_commit_keeps_whole_and_confirmed_files() {
        let batches: [&[u32]; 5] = [&[1], &[2, 3, 4, 5, 6, 7], &[], &[8, 9], &[10]];
        for left in 1..60 {
            let mut disk = Model { left, ..Model::default() };
            let mut placed = vec![];
            let mut reports = vec![];
            for batch in batches.iter().chain([&[][..]].iter()) {
                disk.data.extend(batch.iter());
                let (told, next) = turn(&mut disk, batch.to_vec(), placed);
                reports.extend(told);
                placed = next;
                disk.check();
            }
            if left == 59 {
                let done: Vec<_> = reports.iter().flatten().copied().collect();
                assert_eq!(done, [1, 2, 3, 4, 5, 6, 8, 9, 10], "each file is confirmed but the refused one");
                assert_eq!(reports.len(), 10, "which is reported, too");
                assert!(placed.is_empty());
            }
        }
    }
}
