//! A directory in memory that fails on request and loses what was not synced, sector by sector, like a
//! machine whose power goes. For the tests of the disk backend only.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::disk::files::{Files, Handle};

const SECTOR_BYTES: usize = 64;

/// What goes wrong, counted in calls that change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// One call fails.
    Once(usize),
    /// From this call on there is no room; syncing and shrinking still work.
    Full(usize),
    /// From this call on nothing works: the machine is going down.
    Dead(usize),
}

/// The directory; clones are the same one.
#[derive(Clone, Default)]
pub(super) struct Sim {
    state: Arc<Mutex<State>>,
    /// Keeps snapshots from being begun.
    pub(super) hold_snapshots: Arc<AtomicBool>,
    /// Panics when a snapshot is begun.
    pub(super) panic_snapshots: Arc<AtomicBool>,
    /// Panics at the next write.
    pub(super) panic_writes: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Changes of names since the directory was last synced: what each did to one or two of them.
    pending_names: Vec<Vec<(String, Option<usize>)>>,
    inodes: Vec<Inode>,
    calls: usize,
    fault: Option<Fault>,
}

#[derive(Default, Clone)]
struct Inode {
    current: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Pending>,
}

#[derive(Clone)]
enum Pending {
    Sector(usize, Vec<u8>),
    Length(usize),
}

#[derive(PartialEq)]
enum Call {
    Grow,
    Shrink,
    Sync,
    Name,
}

/// Numbers that look random and are the same for the same seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

impl Sim {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a test has not panicked in here")
    }

    /// Sets what goes wrong; calls are counted from here.
    pub(super) fn set_fault(&self, fault: Fault) {
        let mut state = self.state();
        (state.calls, state.fault) = (0, Some(fault));
    }

    pub(super) fn calls(&self) -> usize {
        self.state().calls
    }

    /// What a machine finds after its power went: everything synced, and any part of the rest.
    pub(super) fn after_power_loss(&self, seed: u64) -> Sim {
        let state = self.state();
        let mut random = Random(seed);
        let mut names = state.durable_names.clone();
        // File systems do not promise that directory entries become durable in the order of their changes.
        let chance = [0, 3, 6][random.below(3)];
        for change in state.pending_names.iter().filter(|_| random.below(6) < chance) {
            apply_names(&mut names, change);
        }
        let inodes = state.inodes.iter().map(|inode| inode.after_power_loss(&mut random)).collect();
        let state = State { durable_names: names.clone(), names, inodes, ..State::default() };
        Sim { state: Arc::new(Mutex::new(state)), ..Sim::default() }
    }
}

impl Inode {
    fn after_power_loss(&self, random: &mut Random) -> Inode {
        let mut content = self.durable.clone();
        // All, nothing, or a mix.
        let chance = [0, 3, 6][random.below(3)];
        for pending in self.pending.iter().filter(|_| random.below(6) < chance) {
            pending.apply(&mut content);
        }
        Inode { current: content.clone(), durable: content, pending: Vec::new() }
    }
}

impl Pending {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Pending::Length(bytes) => content.resize(*bytes, 0),
            Pending::Sector(offset, bytes) => {
                content.resize(content.len().max(offset + bytes.len()), 0);
                content[*offset..offset + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}

impl State {
    /// Counts a call and says whether it fails.
    fn call(&mut self, call: Call) -> io::Result<()> {
        self.calls += 1;
        let full = call == Call::Grow || call == Call::Name;
        let kind = match self.fault.unwrap_or(Fault::None) {
            Fault::Once(at) if at == self.calls && full => io::ErrorKind::StorageFull,
            Fault::Once(at) if at == self.calls => io::ErrorKind::Other,
            Fault::Full(from) if from <= self.calls && full => io::ErrorKind::StorageFull,
            Fault::Dead(from) if from <= self.calls => io::ErrorKind::Other,
            _ => return Ok(()),
        };
        Err(io::Error::new(kind, "injected"))
    }

    fn change_names(&mut self, change: Vec<(String, Option<usize>)>) {
        apply_names(&mut self.names, &change);
        self.pending_names.push(change);
    }

    fn write(&mut self, inode: usize, bytes: &[u8], offset: usize) {
        let inode = &mut self.inodes[inode];
        for (index, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
            let pending = Pending::Sector(offset + index * SECTOR_BYTES, sector.to_vec());
            pending.apply(&mut inode.current);
            inode.pending.push(pending);
        }
    }
}

fn apply_names(names: &mut BTreeMap<String, usize>, change: &[(String, Option<usize>)]) {
    for (name, inode) in change {
        match inode {
            Some(inode) => _ = names.insert(name.clone(), *inode),
            None => _ = names.remove(name),
        }
    }
}

impl Files for Sim {
    fn directory(&self) -> &Path {
        Path::new("sim")
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Handle>> {
        let inode = *self.state().names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(SimFile { sim: self.clone(), inode }))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Handle>> {
        while name.starts_with("snapshot-") && self.hold_snapshots.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let panics = name.starts_with("snapshot-") && self.panic_snapshots.load(Ordering::Relaxed);
        assert!(!panics, "injected into a snapshot");
        let mut state = self.state();
        state.call(Call::Name)?;
        let inode = state.inodes.len();
        state.inodes.push(Inode::default());
        state.change_names(vec![(name.to_owned(), Some(inode))]);
        Ok(Box::new(SimFile { sim: self.clone(), inode }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call(Call::Name)?;
        let inode = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        state.change_names(vec![(from.to_owned(), None), (to.to_owned(), Some(inode))]);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.call(Call::Shrink)?;
        state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        state.change_names(vec![(name.to_owned(), None)]);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.state();
        state.call(Call::Sync)?;
        state.durable_names = state.names.clone();
        state.pending_names.clear();
        Ok(())
    }
}

struct SimFile {
    sim: Sim,
    inode: usize,
}

impl Handle for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.sim.state().inodes[self.inode].current.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.sim.state();
        let content = state.inodes[self.inode].current.get(offset as usize..).unwrap_or_default();
        let bytes = buffer.len().min(content.len());
        buffer[..bytes].copy_from_slice(&content[..bytes]);
        Ok(bytes)
    }

    /// A write that fails has been done by half.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        assert!(!self.sim.panic_writes.load(Ordering::Relaxed), "injected into a write");
        let mut state = self.sim.state();
        let outcome = state.call(Call::Grow);
        let done = if outcome.is_ok() { bytes } else { &bytes[..bytes.len() / 2] };
        state.write(self.inode, done, offset as usize);
        outcome
    }

    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        let mut state = self.sim.state();
        state.call(Call::Shrink)?;
        let inode = &mut state.inodes[self.inode];
        inode.current.resize(bytes as usize, 0);
        inode.pending.push(Pending::Length(bytes as usize));
        Ok(())
    }

    /// A sync that fails has forgotten what it should have written, as Linux does: readers still see it,
    /// but no later sync writes it.
    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.sim.state();
        let outcome = state.call(Call::Sync);
        let dead = matches!(state.fault, Some(Fault::Dead(_)));
        let Inode { durable, pending, .. } = &mut state.inodes[self.inode];
        if outcome.is_ok() {
            pending.iter().for_each(|pending| pending.apply(durable));
        }
        if outcome.is_ok() || !dead {
            pending.clear();
        }
        outcome
    }
}
