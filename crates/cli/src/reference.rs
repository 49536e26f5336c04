//! docs/reference/commands.md has every command and every option, and docs/reference/feature-gates.md every gate.
//! `UPDATE_EXPECT=1` writes them anew.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _};
use expect_test::expect_file;

use crate::Arguments;

mod gates;

const HEAD: &str = "\
# Commands and options

Every command with its options. What the commands are for is in [commands](../commands.md); `longshore COMMAND --help` shows the
same on the terminal, with an example.

Generated from the code: `UPDATE_EXPECT=1 cargo test -p cli --bin longshore reference`
";

/// Text in a cell of a table: one line, in which nothing ends the cell or is taken for HTML.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|").replace('<', "&lt;")
}

/// How an argument is typed.
fn typed(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let takes = argument.get_action().takes_values();
    let values: String = values.iter().filter(|_| takes).map(|value| format!(" {value}")).collect();
    let names = match (argument.get_short(), argument.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, Some(long)) => format!("--{long}"),
        (None, None) => String::new(),
    };
    format!("{names}{values}").trim().to_owned()
}

/// What an argument does, with its default and the words it takes.
fn about(argument: &Arg) -> String {
    let said = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = cell(&said);
    let words: Vec<String> =
        argument.get_possible_values().iter().map(|word| format!("`{}`", word.get_name())).collect();
    if argument.get_action().takes_values() && !words.is_empty() {
        let _ = write!(text, " (one of {})", words.join(", "));
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if argument.get_action().takes_values() && !defaults.is_empty() && !argument.is_hide_default_value_set() {
        let _ = write!(text, " (default {})", defaults.join(", "));
    }
    text
}

fn describe(command: &Command, path: &str, text: &mut String) {
    let _ =
        write!(text, "\n## {path}\n\n{}\n", command.get_about().map(ToString::to_string).unwrap_or_default());
    let is_own = |argument: &&Arg| {
        !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str())
    };
    let arguments: Vec<&Arg> = command.get_arguments().filter(is_own).collect();
    if !arguments.is_empty() {
        text.push_str("\n| argument | what |\n|---|---|\n");
    }
    for argument in arguments {
        let needed = if argument.is_required_set() { " (required)" } else { "" };
        let _ = writeln!(text, "| `{}` | {}{needed} |", typed(argument), about(argument));
    }
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
    {
        describe(inner, &format!("{path} {}", inner.get_name()), text);
    }
}

#[test]
fn every_option_is_in_the_reference() {
    let mut command = Arguments::command();
    command.build();
    let mut text = HEAD.to_owned();
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
    {
        describe(inner, &format!("longshore {}", inner.get_name()), &mut text);
    }
    expect_file!["../../../docs/reference/commands.md"].assert_eq(&text);
}
