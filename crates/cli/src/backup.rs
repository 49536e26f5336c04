//! `longshore backup` and `longshore restore`: a copy of the data directory of `longshore up`, taken while it runs or
//! when it is stopped, and put back. Members are copied before the control plane, so that after a restore the control
//! plane never knows less than they do.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use serde_json::json;

use crate::{Hint, data_directory, output};

mod files;

/// The file by which a backup is known.
const BACKUP_FILE: &str = "backup.json";

/// Arguments of `longshore backup`.
#[derive(clap::Args)]
pub struct Backup {
    /// Directory to write the backup to; it must not exist yet
    #[arg(value_name = "BACKUP")]
    to: PathBuf,
    /// Data directory of `longshore up` [default: longshore in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "DIR", env = "LONGSHORE_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

/// Arguments of `longshore restore`.
#[derive(clap::Args)]
pub struct Restore {
    /// Backup directory that `longshore backup` wrote
    #[arg(value_name = "BACKUP")]
    from: PathBuf,
    /// Data directory to create; it must be empty or not exist [default: longshore in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "DIR", env = "LONGSHORE_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

/// Copies the data directory.
pub fn backup(arguments: &Backup) -> Result<()> {
    let from = data_directory::data_dir(arguments.data_dir.as_deref())?;
    if !from.join("store").is_dir() {
        let hint = Hint("pass the data directory of `longshore up` with --data-dir".to_owned());
        return Err(anyhow::Error::new(hint)
            .context(format!("{} is not the data directory of a control plane", from.display())));
    }
    is_free(&arguments.to, "choose another name for the backup")?;
    let draft = draft(&arguments.to)?;
    let mark = json!({ "time": jiff::Timestamp::now().to_string(), "version": env!("CARGO_PKG_VERSION") });
    files::copy(&from, &draft)?;
    data_directory::private_file(&draft.join(BACKUP_FILE), &format!("{mark:#}\n"))?;
    place(&draft, &arguments.to)?;
    output::print(&format!("{} backed up to {}\n", from.display(), arguments.to.display()))?;
    output::print_message(
        "It contains the keys of the control plane and every Secret: keep it where only you can read it.",
    );
    Ok(())
}

/// Puts a copy in the place of a data directory.
pub fn restore(arguments: &Restore) -> Result<()> {
    let to = data_directory::data_dir(arguments.data_dir.as_deref())?;
    if !arguments.from.join(BACKUP_FILE).is_file() {
        let hint = Hint("`longshore backup DIR` writes one".to_owned());
        return Err(anyhow::Error::new(hint).context(format!("{} is not a backup", arguments.from.display())));
    }
    let aside = format!("stop `longshore up` and move it away: mv {0} {0}.old", to.display());
    is_free(&to, &aside)?;
    let draft = draft(&to)?;
    files::copy(&arguments.from, &draft)?;
    fs::remove_file(draft.join(BACKUP_FILE)).context("finish the copy")?;
    place(&draft, &to)?;
    output::print(&format!("{} restored to {}\n", arguments.from.display(), to.display()))?;
    output::print_message(&format!("Start it with: longshore up --data-dir {}", to.display()));
    Ok(())
}

/// What is there is never overwritten.
fn is_free(path: &Path, hint: &str) -> Result<()> {
    let is_empty = match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    match is_empty {
        true => Ok(()),
        false => {
            Err(anyhow::Error::new(Hint(hint.to_owned()))
                .context(format!("{} already exists", path.display())))
        }
    }
}

/// A directory beside the one that is wanted, so that a copy that is broken off is never taken for a whole one.
fn draft(wanted: &Path) -> Result<PathBuf> {
    let name = wanted.file_name().ok_or_else(|| anyhow!("{} has no name", wanted.display()))?;
    let mut draft = name.to_owned();
    draft.push(format!(".{}.tmp", std::process::id()));
    let draft = wanted.with_file_name(draft);
    data_directory::private_directory(&draft)?;
    Ok(draft)
}

fn place(draft: &Path, wanted: &Path) -> Result<()> {
    // An empty directory in its place is replaced.
    fs::rename(draft, wanted).with_context(|| format!("rename {} to its final name", wanted.display()))
}
