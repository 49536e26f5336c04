//! Copies a data directory so that its stores can be opened, also while they are written: a store only appends, see
//! docs/store-format.md.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::data_directory;

/// How often the copy of a store is retried because one of its files was replaced meanwhile.
const COPY_RETRIES_MAX: usize = 10;

/// Copies a directory and everything in it, directories before files and the store of the control plane last.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let reading = || format!("read {}", from.display());
    let entries: io::Result<Vec<fs::DirEntry>> = fs::read_dir(from).with_context(reading)?.collect();
    let mut paths: Vec<PathBuf> = entries.with_context(reading)?.iter().map(fs::DirEntry::path).collect();
    paths.sort_by_key(|path| (path.is_dir() && path.ends_with("store"), !path.is_dir(), path.clone()));
    for path in paths {
        let Some(name) = path.file_name() else { continue };
        let target = to.join(name);
        if !path.is_dir() {
            copy_file(&path, &target).with_context(|| format!("copy {}", path.display()))?;
            continue;
        }
        data_directory::private_directory(&target)?;
        match is_store(&path) {
            true => copy_store(&path, &target)?,
            false => copy(&path, &target)?,
        }
    }
    Ok(())
}

fn is_store(directory: &Path) -> bool {
    store_files(directory).is_ok_and(|files| !files.is_empty())
}

/// The files of a store: snapshots first, then the logs, oldest first.
fn store_files(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".ls") {
            names.push(name);
        }
    }
    names.sort_by_key(|name| (!name.starts_with("snapshot-"), name.clone()));
    Ok(names)
}

/// Copies the files that are there at one moment. A compaction may remove one before it is copied: then they are
/// listed and copied anew.
fn copy_store(from: &Path, to: &Path) -> Result<()> {
    let doing = || format!("copy the store {}", from.display());
    for _ in 0..COPY_RETRIES_MAX {
        let names = store_files(from).with_context(doing)?;
        match copy_all(from, to, &names) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                store_files(to)
                    .with_context(doing)?
                    .iter()
                    .try_for_each(|name| fs::remove_file(to.join(name)))?;
            }
            copied => return copied.with_context(doing),
        }
    }
    Err(anyhow::anyhow!("the store replaces its files faster than they can be copied")).with_context(doing)
}

fn copy_all(from: &Path, to: &Path, names: &[String]) -> io::Result<()> {
    let newest = names.last();
    for name in names {
        match Some(name) == newest {
            true => copy_newest(&from.join(name), &to.join(name))?,
            false => copy_file(&from.join(name), &to.join(name))?,
        }
    }
    Ok(())
}

/// The file that is written now is read twice: what is the same both times was written before, and whole groups of
/// writes are kept. What follows is cut off, like the end that a crash leaves.
fn copy_newest(from: &Path, to: &Path) -> io::Result<()> {
    let (mut first, second) = (fs::read(from)?, fs::read(from)?);
    let same = first.iter().zip(&second).take_while(|(a, b)| a == b).count();
    first.truncate(same);
    write(to, &first)
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o600))?;
    fs::File::open(to)?.sync_all()
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(path, bytes)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    fs::File::open(path)?.sync_all()
}
