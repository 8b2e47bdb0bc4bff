//! The container of the program, built by `Containerfile` from an unpacked archive, where there is something to build it.

use std::path::Path;

use flate2::read::GzDecoder;

use super::release::Release;
use crate::run;

/// The programs that build and run containers, in the order of preference.
const RUNTIMES: [&str; 2] = ["podman", "docker"];

/// A program that answers.
pub(super) fn runtime() -> Result<&'static str, String> {
    let answers = |name: &&&str| run::is_installed(name) && run::output_in(&run::root(), name, &["info"]).is_ok();
    RUNTIMES.iter().find(answers).copied().ok_or_else(|| format!("none of {} answers here", RUNTIMES.join(", ")))
}

/// Builds the container of an archive, asks it for its version, and removes it.
pub(super) fn try_out(release: &Release, runtime: &str, archive: &[u8]) -> Result<(), String> {
    let folder = release.scratch("container")?;
    tar::Archive::new(GzDecoder::new(archive))
        .unpack(&folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?.flatten();
    let unpacked = entries.next().ok_or("the archive is empty")?.path();
    let image = format!("localhost/anabranch-dist:{}", release.version);
    run::run_in(&unpacked, runtime, &["build", "--tag", &image, "--file", "Containerfile", "."], &[])?;
    let told = run::output_in(&unpacked, runtime, &["run", "--rm", &image, "--version"]);
    let told = match told {
        // Within some machines nothing may set what a container has of its own, its limits and control groups.
        Err(problem) if runtime == "podman" && run::is_installed("buildah") => {
            in_changed_root(&unpacked, &image).map_err(|second| format!("{problem}; {second}"))
        }
        told => told,
    };
    let removed = run::run_in(&unpacked, runtime, &["rmi", &image], &[]);
    match told?.trim() {
        told if told == format!("anabranch {}", release.version) => run::say(&format!("container: {told}")),
        told => return Err(format!("the container says that it is {told}")),
    }
    removed
}

/// What the program of an image of podman prints for `--version` when only the root is another one.
fn in_changed_root(folder: &Path, image: &str) -> Result<String, String> {
    let program =
        run::output_in(folder, "podman", &["image", "inspect", "--format", "{{index .Config.Entrypoint 0}}", image])?;
    let container = run::output_in(folder, "buildah", &["from", image])?;
    let container = container.trim();
    let arguments = ["run", "--isolation", "chroot", container, program.trim(), "--version"];
    let told = run::output_in(folder, "buildah", &arguments);
    run::output_in(folder, "buildah", &["rm", container])?;
    told
}
