//! Shell completion, manual pages, and the name under which the program was started (kubectl plugin).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Command;
use clap_complete::Shell;

use crate::{data_directory, output};

mod names;

pub use names::{Names, run as complete_names};

/// How kubectl calls what it starts for `kubectl longshore`.
const PLUGIN: &str = "kubectl-longshore";

/// Arguments of `longshore completion`.
#[derive(clap::Args)]
pub struct Completion {
    /// Shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Arguments of `longshore man`.
#[derive(clap::Args)]
pub struct Man {
    /// Directory for the manual pages, one file per command
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// The name by which usage texts call the program.
pub fn called(program: Option<&OsStr>) -> &'static str {
    let name = program.and_then(|program| Path::new(program).file_name());
    if name == Some(OsStr::new(PLUGIN)) { "kubectl longshore" } else { "longshore" }
}

/// What lets bash complete names: what the control plane has, where a name is wanted.
const BASH_NAMES: &str = r#"
_longshore_names() {
    _longshore "$@"
    local cur="${COMP_WORDS[COMP_CWORD]}" names
    case "$cur" in -*) return ;; esac
    names="$(longshore complete-names -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)"
    if [ -n "$names" ]; then
        COMPREPLY=($(compgen -W "$names" -- "$cur"))
    fi
}
complete -F _longshore_names -o bashdefault -o default longshore
"#;

/// The same for zsh.
const ZSH_NAMES: &str = r#"
_longshore_names() {
    local -a names
    names=(${(f)"$(longshore complete-names -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#names )); then
        compadd -a names
    else
        _longshore "$@"
    fi
}
compdef _longshore_names longshore
"#;

/// The same for fish.
const FISH_NAMES: &str = r#"
complete -c longshore -f -a '(longshore complete-names -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
"#;

/// Prints what lets a shell complete commands, options and names.
pub fn completion(arguments: &Completion, mut command: Command) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "longshore", &mut text);
    let names = match arguments.shell {
        Shell::Bash => BASH_NAMES,
        Shell::Zsh => ZSH_NAMES,
        Shell::Fish => FISH_NAMES,
        _ => "",
    };
    output::print(&format!("{}{names}", String::from_utf8_lossy(&text)))
}

/// Writes a manual page per command.
pub fn man(arguments: &Man, command: Command) -> Result<()> {
    let directory = &arguments.directory;
    data_directory::directory(directory)?;
    clap_mangen::generate_to(command.bin_name("longshore"), directory)
        .with_context(|| format!("write manual pages to {}", directory.display()))?;
    output::print_message(&format!("Read them with: man {}", directory.join("longshore.1").display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_follows_how_it_was_started() {
        let check = |program: &str, expected: &str| assert_eq!(called(Some(OsStr::new(program))), expected);
        check("longshore", "longshore");
        check("/usr/local/bin/kubectl-longshore", "kubectl longshore");
        check("target/debug/longshore", "longshore");
        assert_eq!(called(None), "longshore");
    }
}
