//! `cargo xtask drill FOLDER`: plays packetdrill scripts against our TCP, without a kernel.

use std::path::PathBuf;

use clap::Args;

use crate::run;

/// Which scripts, and with which law.
#[derive(Args)]
pub(crate) struct Options {
    /// The folder of scripts, such as `gtests/net/tcp` of packetdrill's sources.
    folder: PathBuf,
    /// The congestion law.
    #[arg(long, default_value = "cubic")]
    cc: String,
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    // The program runs in the root of the workspace.
    let folder =
        std::path::absolute(&options.folder).map_err(|error| format!("{}: {error}", options.folder.display()))?;
    let folder = folder.to_str().ok_or_else(|| format!("{}: it is not UTF-8", folder.display()))?;
    run::run("cargo", &["run", "--quiet", "-p", "anabranch-tcp", "--example", "drill", "--", folder, &options.cc], &[])
}
