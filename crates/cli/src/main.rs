//! The `anabranch` command. It is thin: it reads arguments, calls the libraries, and prints.

mod args;
mod artifact;
mod cc;
mod compare;
mod doctor;
mod eval;
mod failure;
mod files;
mod generate;
mod kernel;
mod link;
mod online;
mod playground;
mod reproduce;
mod sim;
mod sim_bench;
mod swarm;
mod tcp;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Anabranch, Artifact, Command, Sim};
use crate::failure::Outcome;

fn main() -> ExitCode {
    args::ticket::hide();
    let outcome = run(Anabranch::parse());
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                terminal::complain(&failure.message);
                failure.excerpt.iter().for_each(|excerpt| terminal::show(excerpt));
            }
            ExitCode::from(failure.code)
        }
    }
}

fn run(anabranch: Anabranch) -> Outcome {
    match anabranch.command {
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Eval(args) => eval::eval(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Sim(Sim::Run(args)) => sim::run(&args),
        Command::Sim(Sim::Sweep(args)) => sim::sweep(&args),
        Command::Sim(Sim::Merge(args)) => sim::merge(&args),
        Command::Sim(Sim::Swarm(args)) => swarm::swarm(&args),
        Command::Sim(Sim::Bench(args)) => sim_bench::bench(&args),
        Command::Playground(args) => playground::playground(&args),
        Command::Artifact(Artifact::Pack(args)) => artifact::pack(&args),
        Command::Artifact(Artifact::Verify(args)) => artifact::verify(&args),
        Command::Cc(command) => cc::cc(&command),
        Command::Generate(command) => generate::generate(&command),
        Command::Link(command) => link::link(&command),
        Command::Kernel(command) => kernel::kernel(&command),
        Command::Tcp(command) => tcp::tcp(&command),
        Command::Key(command) => online::key(&command),
        Command::Recv(args) => online::recv(&args),
        Command::Send(args) => online::send(&args),
        Command::Bench(args) => online::bench(&args),
        Command::Relay(command) => online::relay(&command),
        Command::Tunnel(args) => online::tunnel(&args),
        Command::Watch(args) if args.kernel => kernel::watch(args.once),
        Command::Watch(args) => online::watch(&args),
        Command::Doctor(args) => doctor::doctor(&args),
    }
}
