//! The text of `longshore --help`: commands grouped by purpose, with an example for each.

use clap::Command;

/// Commands by what they are for, each with an example.
const GROUPS: [(&str, &[(&str, &str)]); 6] = [
    (
        "Start",
        &[
            ("up", "longshore up --members 3"),
            ("demo", "longshore demo"),
            ("kubeconfig", "longshore kubeconfig member1 > member1.yaml"),
            ("test", "longshore test policies/ -o junit"),
        ],
    ),
    (
        "Look",
        &[
            ("status", "longshore status"),
            ("why", "longshore why deploy/nginx --cluster member2"),
            ("get", "longshore get deploy -A"),
        ],
    ),
    (
        "Change",
        &[
            ("plan", "longshore plan -f policy.yaml --save web.plan"),
            ("apply", "longshore apply web.plan"),
            ("rollout", "longshore rollout status web"),
            ("reconcile", "longshore reconcile --policy web"),
            ("suspend", "longshore suspend --policy web --cluster member1"),
            ("resume", "longshore resume --policy web"),
            ("promote", "longshore promote deploy/nginx --cluster member1"),
        ],
    ),
    (
        "Clusters",
        &[
            ("join", "longshore join east --cluster-kubeconfig east.yaml"),
            ("unjoin", "longshore unjoin east --cluster-kubeconfig east.yaml"),
            ("taint", "longshore taint east maintenance=planned:NoSchedule"),
            ("cordon", "longshore cordon east"),
            ("uncordon", "longshore uncordon east"),
        ],
    ),
    (
        "Operate",
        &[
            ("controllers", "longshore controllers --kubeconfig control.yaml"),
            ("crds", "longshore crds | kubectl apply --server-side -f -"),
            ("handback", "longshore handback --check --kubeconfig karmada.yaml"),
            ("backup", "longshore backup longshore.backup"),
            ("restore", "longshore restore longshore.backup --data-dir restored"),
        ],
    ),
    (
        "Shell",
        &[
            ("version", "longshore version"),
            ("completion", "source <(longshore completion bash)"),
            ("man", "longshore man ~/.local/share/man/man1"),
        ],
    ),
];

/// How wide the column of names is.
const NAME_COLUMN_WIDTH: usize = 12;

/// The program with its commands in groups, and an example at the end of the help of each.
pub fn grouped(mut command: Command) -> Command {
    let mut text = String::new();
    for (title, members) in GROUPS {
        text += &format!("{title}:\n");
        for (name, _) in members {
            let about = command.find_subcommand(name).and_then(|found| found.get_about().cloned());
            text += &format!("  {name:<NAME_COLUMN_WIDTH$}{}\n", about.unwrap_or_default());
        }
        text += "\n";
    }
    // Commands that have no group yet must not get lost.
    let known =
        |name: &str| GROUPS.iter().any(|(_, members)| members.iter().any(|(known, _)| *known == name));
    let others: Vec<&Command> =
        command.get_subcommands().filter(|one| !one.is_hide_set() && !known(one.get_name())).collect();
    if !others.is_empty() {
        text += "Others:\n";
        for one in others {
            text += &format!(
                "  {:<NAME_COLUMN_WIDTH$}{}\n",
                one.get_name(),
                one.get_about().cloned().unwrap_or_default()
            );
        }
        text += "\n";
    }
    for (name, example) in GROUPS.into_iter().flat_map(|(_, members)| members) {
        if command.find_subcommand(name).is_some() {
            command = command.mut_subcommand(name, |one| one.after_help(format!("Example:\n  {example}")));
        }
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}Options:\n{{options}}\n\n\
         `longshore COMMAND --help` shows the options of a command and an example.\n"
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::Arguments;

    #[test]
    fn every_command_is_in_the_help_and_every_example_has_a_command() {
        let grouped: BTreeSet<&str> =
            GROUPS.iter().flat_map(|(_, members)| members.iter().map(|(name, _)| *name)).collect();
        let command = Arguments::command();
        let commands: BTreeSet<&str> =
            command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name).collect();
        let help = super::grouped(Arguments::command()).render_help().to_string();
        for name in &commands {
            assert!(help.contains(&format!("\n  {name} ")), "{name} is not in\n{help}");
        }
        assert_eq!(grouped.difference(&commands).collect::<Vec<_>>(), Vec::<&&str>::new(), "are no commands");
    }

    #[test]
    fn examples_are_commands_that_can_be_typed() {
        for (name, example) in GROUPS.into_iter().flat_map(|(_, members)| members) {
            let typed = example.split(['|', '>', ')']).next().unwrap_or_default().replace("source <(", "");
            let parsed = Arguments::command().try_get_matches_from(typed.split_whitespace());
            assert!(
                parsed.is_ok(),
                "{name}: {}",
                parsed.err().map(|error| error.to_string()).unwrap_or_default()
            );
        }
    }

    #[test]
    fn the_help_fits_on_a_terminal() {
        let mut command = super::grouped(Arguments::command());
        let help = command.render_help().to_string();
        assert!(
            help.contains(
                "\nLook:\n  status      Show clusters, policies and everything that is \
                 stuck\n"
            ),
            "{help}"
        );
        assert!(help.contains("Usage: longshore") && help.contains("--version"), "{help}");
    }

    #[test]
    fn the_unit_of_systemd_starts_a_command_that_can_be_typed() {
        let unit = include_str!("../../../deploy/systemd/longshore.service");
        let line = unit
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/"))
            .expect("it starts one");
        let parsed = Arguments::command().try_get_matches_from(line.split_whitespace());
        assert!(
            parsed.is_ok(),
            "{line}: {}",
            parsed.err().map(|error| error.to_string()).unwrap_or_default()
        );
    }
}
