//! The audit log file: lines are appended, a full file is rotated under a timestamp, old files are deleted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use supervise::Recovered as _;

/// When a file is full, and how many full ones are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// A file of this size is rotated.
    pub bytes_max: u64,
    /// So many of those are kept.
    pub kept: usize,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { bytes_max: 100 << 20, kept: 10 }
    }
}

/// A file of audit events that only its owner can read.
pub struct AuditFile {
    path: PathBuf,
    rotation: Rotation,
    /// Makes lines follow one another; held for a write to the page cache.
    open: Mutex<Open>,
}

struct Open {
    file: File,
    bytes: u64,
    /// Said once, so that a full disk does not fill the log too.
    failed: bool,
}

impl AuditFile {
    /// Opens the file, or makes it.
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let (file, bytes) = append(path)?;
        Ok(Self { path: path.to_owned(), rotation, open: Mutex::new(Open { file, bytes, failed: false }) })
    }

    /// Appends a line. A failure is logged and fails no request, as in Kubernetes.
    pub(super) fn write(&self, line: &str) {
        let mut open = self.open.lock().recovered();
        let result = self.make_room(&mut open, line.len() as u64 + 1).and_then(|()| {
            let mut bytes = Vec::with_capacity(line.len() + 1);
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
            open.file.write_all(&bytes)
        });
        match result {
            Ok(()) => {
                open.bytes += line.len() as u64 + 1;
                open.failed = false;
            }
            Err(error) if !open.failed => {
                open.failed = true;
                tracing::error!(%error, path = %self.path.display(), "write the audit log");
            }
            Err(_) => {}
        }
    }

    fn make_room(&self, open: &mut Open, needed: u64) -> io::Result<()> {
        if open.bytes == 0 || open.bytes + needed <= self.rotation.bytes_max {
            return Ok(());
        }
        let number = self.run_blocking()?.last().map_or(1, |(number, _)| number + 1);
        std::fs::rename(&self.path, self.path.with_added_extension(number.to_string()))?;
        (open.file, open.bytes) = append(&self.path)?;
        let run_blocking = self.run_blocking()?;
        let surplus = run_blocking.len().saturating_sub(self.rotation.kept);
        run_blocking.iter().take(surplus).try_for_each(|(_, path)| std::fs::remove_file(path))
    }

    /// The rotated files, oldest first.
    fn run_blocking(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = |path: &Path| -> Option<u64> {
            path.file_name()?.to_str()?.strip_prefix(&name)?.strip_prefix('.')?.parse().ok()
        };
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder.unwrap_or(Path::new(".")))? {
            let path = entry?.path();
            found.extend(number(&path).map(|number| (number, path)));
        }
        found.sort();
        Ok(found)
    }
}

fn append(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let bytes = file.metadata()?.len();
    Ok((file, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_audit_file_is_rotated_and_the_oldest_deleted() {
        let folder = tempfile::tempdir().expect("there is room for a temporary directory");
        let path = folder.path().join("audit.log");
        let file = AuditFile::open(&path, Rotation { bytes_max: 20, kept: 2 }).expect("a file");
        (0..10).for_each(|number| file.write(&format!("line {number:04}")));
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        assert_eq!(read("audit.log"), "line 0008\nline 0009\n");
        assert_eq!(read("audit.log.4"), "line 0006\nline 0007\n");
        assert_eq!(read("audit.log.3"), "line 0004\nline 0005\n");
        assert_eq!(read("audit.log.2"), "", "no more than two are kept");
        drop(file);
        let file = AuditFile::open(&path, Rotation { bytes_max: 20, kept: 2 }).expect("the file");
        file.write("again 001");
        assert_eq!(read("audit.log.5"), "line 0008\nline 0009\n");
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
    }
}
