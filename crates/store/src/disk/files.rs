//! The file system operations of the disk backend as a trait, so that tests can inject a failing one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::OpenError;

/// The file that marks a directory as in use.
const LOCK_NAME: &str = "lock";

/// One directory of files.
pub(crate) trait Files: Send + Sync {
    /// The directory, for messages.
    fn directory(&self) -> &Path;
    fn list(&self) -> io::Result<Vec<String>>;
    fn open(&self, name: &str) -> io::Result<Box<dyn Handle>>;
    /// Makes an empty file, in place of one that is there.
    fn create(&self, name: &str) -> io::Result<Box<dyn Handle>>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals durable.
    fn sync_directory(&self) -> io::Result<()>;
}

/// One open file.
pub(crate) trait Handle: Send {
    fn len(&self) -> io::Result<u64>;
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of the bytes, or fails after some of them.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn set_len(&mut self, bytes: u64) -> io::Result<()>;
    /// Makes contents and length durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// A directory of the operating system, locked against other processes for as long as this lives.
pub(crate) struct RealFiles {
    directory: PathBuf,
    _lock: File,
}

impl RealFiles {
    /// Takes the directory, which is created if it is not there.
    pub(crate) fn lock(directory: &Path) -> Result<RealFiles, OpenError> {
        let fail = |action, path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Io { action, path, source }
        };
        create_directory(directory).map_err(fail("create directory", directory))?;
        let path = directory.join(LOCK_NAME);
        let lock = options().create(true).truncate(false).open(&path).map_err(fail("open", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(RealFiles { directory: directory.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked { directory: directory.to_owned() }),
            Err(TryLockError::Error(source)) => Err(fail("lock", &path)(source)),
        }
    }
}

/// Makes a directory that only its owner can look into, and its name durable.
fn create_directory(directory: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| !path.exists()).collect();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    for parent in missing.into_iter().filter_map(Path::parent) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// How files are opened: what is stored may be secret.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

impl Files for RealFiles {
    fn directory(&self) -> &Path {
        &self.directory
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.directory)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Handle>> {
        Ok(Box::new(options().open(self.directory.join(name))?))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Handle>> {
        Ok(Box::new(options().create(true).truncate(true).open(self.directory.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.directory.join(from), self.directory.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.directory.join(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}

impl Handle for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        File::set_len(self, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}
