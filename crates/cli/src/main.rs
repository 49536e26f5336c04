//! The one binary: the composition root and everything that prints.

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

mod apply;
mod backup;
mod certificates;
mod computed;
mod connection;
mod consent;
mod control;
mod controllers;
mod crds;
mod demo;
mod encryption_key;
mod errors;
mod feature_gates;
mod get;
mod greeting;
mod handback;
mod help;
mod join;
mod kinds;
mod kubeconfig;
mod limits;
mod locals;
mod logging;
mod members;
mod output;
mod places;
mod plan;
mod policies;
mod progress;
mod promote;
mod reconcile;
#[cfg(test)]
mod reference;
mod rollout;
mod runtime;
mod security;
mod shell;
#[cfg(test)]
mod stage;
mod status;
mod suspend;
mod taint;
mod test;
#[cfg(test)]
mod test_server;
mod text;
mod up;
mod version;
mod wait;
mod watch;
mod why;

use errors::{Hint, causes, report};
use runtime::asking;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Delivers Kubernetes resources to many clusters, by policy, without fear.
#[derive(Parser)]
#[command(name = "longshore", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a control plane on this machine: one process, no Docker, no etcd, no cluster.
    Up(up::Arguments),
    /// Run the controllers and the admission webhooks on a Kubernetes API server.
    Controllers(controllers::Arguments),
    /// Print the definitions of every kind, or of those that an API server needs.
    Crds(crds::Arguments),
    /// Make a cluster a member: an account for us there, its credentials and its Cluster here.
    Join(join::Arguments),
    /// Let a member go: its Cluster and credentials here, the account there.
    Unjoin(join::Unjoin),
    /// Prepare the return of a control plane to Karmada, after the controllers were stopped.
    Handback(handback::Arguments),
    /// Print a kubeconfig for the control plane or for one local cluster.
    Kubeconfig(kubeconfig::Arguments),
    /// Play one of five stories step by step: what is typed, what changes, what waits and why.
    Demo(demo::Arguments),
    /// Play scenario files on a whole control plane inside this process, or on a live one.
    Test(test::Arguments),
    /// Show what a change would do, before it is made: 0 nothing, 2 changes, 1 error.
    Plan(plan::Arguments),
    /// Make the changes of a saved plan, or of files after showing what they do.
    Apply(apply::Arguments),
    /// Show what members have of a kind, in one table.
    Get(get::Arguments),
    /// Show the whole system at a glance.
    Status(status::Arguments),
    /// Explain why a template is where it is, from its policy to its members.
    Why(why::Arguments),
    /// Hold back what a policy propagates, or one template.
    Suspend(suspend::Suspend),
    /// Let go what was held back, after saying what that dispatches.
    Resume(suspend::Resume),
    /// Let policies that wait for a change of their templates act now.
    Reconcile(reconcile::Arguments),
    /// Follow a policy through its generations, and back.
    Rollout(rollout::Arguments),
    /// Set or remove taints of a cluster.
    Taint(taint::Arguments),
    /// Keep new workloads away from a cluster.
    Cordon(taint::Cordon),
    /// Let workloads come to a cluster again.
    Uncordon(taint::Cordon),
    /// Take over an object that already runs in a cluster.
    Promote(promote::Arguments),
    /// Copy the data directory of `longshore up`, while it runs or when it is stopped.
    Backup(backup::Backup),
    /// Make a data directory from a backup.
    Restore(backup::Restore),
    /// Print the version of this program and of the control plane.
    Version(version::Arguments),
    /// Print what lets a shell complete commands, options and names.
    Completion(shell::Completion),
    /// Print the names that can stand in the place of a word; for completion.
    #[command(hide = true)]
    CompleteNames(shell::Names),
    /// Write manual pages into a directory.
    Man(shell::Man),
}

impl Command {
    /// Begins to log, by the options of the command or as is usual for it.
    fn start_log(&self) {
        let flags = match self {
            Command::Up(arguments) => &arguments.log,
            Command::Controllers(arguments) => &arguments.log,
            // Controllers complain of the failures that scenarios make.
            Command::Test(_) | Command::Demo(_) => return logging::start("error", logging::Format::Text),
            Command::Kubeconfig(_) => return logging::start("warn", logging::Format::Text),
            // A client that cannot go on says so itself.
            _ => return logging::start("off", logging::Format::Text),
        };
        logging::start(&flags.filter(), flags.format());
        logging::log_panics();
    }
}

fn main() -> ExitCode {
    let called = shell::called(std::env::args_os().next().as_deref());
    let matches = help::grouped(Arguments::command()).bin_name(called).get_matches();
    let command = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).command;
    command.start_log();
    let result = match command {
        Command::Plan(arguments) => return ended(asking(plan::run(&arguments))),
        Command::Handback(arguments) => return ended(asking(handback::run(&arguments))),
        Command::Apply(arguments) => asking(apply::run(&arguments)),
        Command::Up(arguments) => up::run(&arguments),
        Command::Controllers(arguments) => controllers::run(&arguments),
        Command::Crds(arguments) => asking(crds::run(&arguments)),
        Command::Join(arguments) => asking(join::run(&arguments)),
        Command::Unjoin(arguments) => asking(join::unjoin(&arguments)),
        Command::Kubeconfig(arguments) => kubeconfig::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Get(arguments) => asking(get::run(&arguments)),
        Command::Status(arguments) => asking(status::run(&arguments)),
        Command::Why(arguments) => asking(why::run(&arguments)),
        Command::Suspend(arguments) => asking(suspend::suspend(&arguments)),
        Command::Resume(arguments) => asking(suspend::resume(&arguments)),
        Command::Reconcile(arguments) => asking(reconcile::run(&arguments)),
        Command::Rollout(arguments) => asking(rollout::run(&arguments)),
        Command::Taint(arguments) => asking(taint::run(&arguments)),
        Command::Cordon(arguments) => asking(taint::cordon(&arguments)),
        Command::Uncordon(arguments) => asking(taint::uncordon(&arguments)),
        Command::Promote(arguments) => asking(promote::run(&arguments)),
        Command::Backup(arguments) => backup::backup(&arguments),
        Command::Restore(arguments) => backup::restore(&arguments),
        Command::Version(arguments) => asking(version::run(&arguments)),
        Command::Completion(arguments) => shell::completion(&arguments, Arguments::command()),
        Command::CompleteNames(arguments) => asking(shell::complete_names(&arguments)),
        Command::Man(arguments) => shell::man(&arguments, Arguments::command()),
    };
    ended(result.map(|()| ExitCode::SUCCESS))
}

/// How the process ends; an error is reported here and nowhere else.
fn ended(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        report(&error);
        ExitCode::FAILURE
    })
}
