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
    /// Also judge the flag PSH where the scripts have it before the last of what was written.
    #[arg(long)]
    push: bool,
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    // The program runs in the root of the workspace.
    let folder =
        std::path::absolute(&options.folder).map_err(|error| format!("{}: {error}", options.folder.display()))?;
    let folder = folder.to_str().ok_or_else(|| format!("{}: it is not UTF-8", folder.display()))?;
    let mut arguments = vec!["run", "--quiet", "-p", "anabranch-tcp", "--example", "drill", "--", folder, &options.cc];
    if options.push {
        arguments.push("push");
    }
    run::run("cargo", &arguments, &[])
}
