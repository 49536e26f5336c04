//! The paths of files on disk, and their permissions: only their owner can read them.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::Hint;

/// The data directory that is named or, when none is, the one under the user's data home.
pub fn data_dir(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(directory) => std::path::absolute(directory).context("find the data directory"),
        None => default_data_dir(),
    }
}

fn default_data_dir() -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    let hint = || Hint("choose a directory with --data-dir, or use --ephemeral".to_owned());
    Ok(home
        .ok_or_else(hint)
        .context("find a data directory: neither XDG_DATA_HOME nor HOME is set")?
        .join("longshore"))
}

/// Creates a directory that every user may read.
pub fn directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("make directory {}", path.display()))
}

/// Makes a directory that only its owner can enter.
pub fn private_directory(path: &Path) -> Result<()> {
    let hint =
        || Hint("choose a directory that you can write with --data-dir, or use --ephemeral".to_owned());
    let made =
        fs::create_dir_all(path).and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o700)));
    made.map_err(|error| {
        anyhow::Error::new(hint()).context(error).context(format!("make directory {}", path.display()))
    })
}

/// Writes a file that only its owner can read, whole or not at all.
pub fn private_file(path: &Path, content: &str) -> Result<()> {
    let draft = path.with_extension("new");
    let write = || -> std::io::Result<()> {
        // A draft that an earlier run left behind may have other permissions.
        let _ = fs::remove_file(&draft);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    write().with_context(|| format!("write {}", path.display()))
}
