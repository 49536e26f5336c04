//! The one binary: the composition root and everything that prints.

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

mod apply;
mod backup;
mod certificates;
mod change_budget;
mod computed;
mod confirmation;
mod connection;
mod control;
mod controllers;
mod crds;
mod data_directory;
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
mod kubeconfig_problem;
mod limits;
mod locals;
mod logging;
mod members;
mod output;
mod plan;
mod policy_lookup;
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
mod terminal_text;
mod test;
#[cfg(test)]
mod test_server;
mod up;
mod version;
mod wait;
mod watch;
mod why;

use errors::{Hint, causes, print_error};
use runtime::run_client;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Multi-cluster control plane: delivers Kubernetes resources to many clusters by policy, with a plan before each
/// change.
#[derive(Parser)]
#[command(name = "longshore", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a control plane on this machine, in one process; needs no Docker, no etcd and no cluster.
    Up(up::Arguments),
    /// Run the controllers and admission webhooks against a Kubernetes API server.
    Controllers(controllers::Arguments),
    /// Print the CustomResourceDefinitions, all of them or those that an API server lacks.
    Crds(crds::Arguments),
    /// Register a cluster as a member: create a service account in it, and its Cluster and credentials here.
    Join(join::Arguments),
    /// Remove a member: delete its Cluster and credentials here, and the service account in it.
    Unjoin(join::Unjoin),
    /// Prepare the return of a control plane to Karmada, after you stopped the controllers.
    Handback(handback::Arguments),
    /// Print a kubeconfig for the control plane or for one local cluster.
    Kubeconfig(kubeconfig::Arguments),
    /// Play one of five stories step by step: each command, what it changes, what waits and why.
    Demo(demo::Arguments),
    /// Play scenario files on a simulated control plane in this process, or on a live one.
    Test(test::Arguments),
    /// Show what a change would do before you make it. Exit code 0: nothing, 2: changes, 1: error.
    Plan(plan::Arguments),
    /// Apply a saved plan, or manifests after showing their plan.
    Apply(apply::Arguments),
    /// List objects of all member clusters in one table.
    Get(get::Arguments),
    /// Show clusters, policies and everything that is stuck.
    Status(status::Arguments),
    /// Explain why a template runs where it runs, from its policy to its members.
    Why(why::Arguments),
    /// Stop writing to members for a policy or for one template.
    Suspend(suspend::Suspend),
    /// End a suspension, after showing what that dispatches to members.
    Resume(suspend::Resume),
    /// Make policies act now on templates for which they wait.
    Reconcile(reconcile::Arguments),
    /// Show or undo the generations of a policy.
    Rollout(rollout::Arguments),
    /// Add, change or remove taints of a cluster.
    Taint(taint::Arguments),
    /// Keep new workloads off a cluster, with a NoSchedule taint.
    Cordon(taint::Cordon),
    /// Allow new workloads on a cluster again.
    Uncordon(taint::Cordon),
    /// Make a template and a policy from an object that runs in a member.
    Promote(promote::Arguments),
    /// Copy the data directory of `longshore up`, running or stopped.
    Backup(backup::Backup),
    /// Create a data directory from a backup.
    Restore(backup::Restore),
    /// Print the versions of this program and of the control plane.
    Version(version::Arguments),
    /// Print a completion script for a shell: commands, options and names of objects.
    Completion(shell::Completion),
    /// Print the names that can complete a word; called by the completion scripts.
    #[command(hide = true)]
    CompleteNames(shell::Names),
    /// Write the manual pages to a directory.
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
        Command::Plan(arguments) => return exit_code(run_client(plan::run(&arguments))),
        Command::Handback(arguments) => return exit_code(run_client(handback::run(&arguments))),
        Command::Apply(arguments) => run_client(apply::run(&arguments)),
        Command::Up(arguments) => up::run(&arguments),
        Command::Controllers(arguments) => controllers::run(&arguments),
        Command::Crds(arguments) => run_client(crds::run(&arguments)),
        Command::Join(arguments) => run_client(join::run(&arguments)),
        Command::Unjoin(arguments) => run_client(join::unjoin(&arguments)),
        Command::Kubeconfig(arguments) => kubeconfig::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Get(arguments) => run_client(get::run(&arguments)),
        Command::Status(arguments) => run_client(status::run(&arguments)),
        Command::Why(arguments) => run_client(why::run(&arguments)),
        Command::Suspend(arguments) => run_client(suspend::suspend(&arguments)),
        Command::Resume(arguments) => run_client(suspend::resume(&arguments)),
        Command::Reconcile(arguments) => run_client(reconcile::run(&arguments)),
        Command::Rollout(arguments) => run_client(rollout::run(&arguments)),
        Command::Taint(arguments) => run_client(taint::run(&arguments)),
        Command::Cordon(arguments) => run_client(taint::cordon(&arguments)),
        Command::Uncordon(arguments) => run_client(taint::uncordon(&arguments)),
        Command::Promote(arguments) => run_client(promote::run(&arguments)),
        Command::Backup(arguments) => backup::backup(&arguments),
        Command::Restore(arguments) => backup::restore(&arguments),
        Command::Version(arguments) => run_client(version::run(&arguments)),
        Command::Completion(arguments) => shell::completion(&arguments, Arguments::command()),
        Command::CompleteNames(arguments) => run_client(shell::complete_names(&arguments)),
        Command::Man(arguments) => shell::man(&arguments, Arguments::command()),
    };
    exit_code(result.map(|()| ExitCode::SUCCESS))
}

/// How the process ends; an error is reported here and nowhere else.
fn exit_code(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        print_error(&error);
        ExitCode::FAILURE
    })
}
