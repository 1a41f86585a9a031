//! The part of a world that has to be remembered, and where: in memory, or in one file that several processes share.
//!
//! The file is replaced as a whole (written beside, synced, renamed) under a lock file, so a process that is killed at
//! any instruction leaves the old world or the new one, and the lock is released by the system.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::clock::{Base, checked_speed};
use super::error::SimError;
use super::machine::Machine;

/// The shape of the file; another is refused.
const FORMAT: u32 = 1;

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    format: u32,
    pub(super) seed: u64,
    /// The system's time when it was made, in milliseconds since 1970: tells a world from the one before a reset.
    pub(super) made_ms: i64,
    pub(super) clock: Base,
    /// The latest moment that the world was acted in; no later session starts before it.
    pub(super) seen_ms: i64,
    /// Launches and terminates asked for so far; the draws of each come from its number.
    pub(super) acts: u64,
    pub(super) machines: Vec<Machine>,
}

impl State {
    pub(super) fn new(seed: u64, clock: Base) -> Self {
        Self {
            format: FORMAT,
            seed,
            made_ms: clock.system_ms,
            clock,
            seen_ms: clock.world_ms,
            acts: 0,
            machines: Vec::new(),
        }
    }

    /// Count an act, note the time, and forget machines that nobody can ask for any more.
    pub(super) fn begin_act(&mut self, now: DateTime<Utc>) -> u64 {
        self.seen_ms = self.seen_ms.max(now.timestamp_millis());
        self.machines.retain(|m| !m.forgotten(now));
        self.acts += 1;
        self.acts
    }
}

/// Where it is remembered.
pub(super) enum Store {
    Memory(Mutex<State>),
    File(FileStore),
}

impl Store {
    /// Look at it.
    pub(super) fn read<R>(&self, look: impl FnOnce(&State) -> R) -> Result<R, SimError> {
        match self {
            Self::Memory(state) => Ok(look(&state.lock().unwrap_or_else(PoisonError::into_inner))),
            Self::File(file) => file.read().map(|s| look(&s)),
        }
    }

    /// Change it; nobody else does meanwhile, in this process or another.
    pub(super) fn update<R>(&self, change: impl FnOnce(&mut State) -> R) -> Result<R, SimError> {
        match self {
            Self::Memory(state) => Ok(change(&mut state.lock().unwrap_or_else(PoisonError::into_inner))),
            Self::File(file) => {
                let _lock = file.lock()?;
                let mut state = file.read()?;
                let result = change(&mut state);
                file.write(&state)?;
                Ok(result)
            }
        }
    }
}

/// A world in a directory.
#[derive(Debug, Clone)]
pub(super) struct FileStore {
    dir: PathBuf,
}

impl FileStore {
    pub(super) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The file.
    pub(super) fn path(&self) -> PathBuf {
        self.dir.join("world.json")
    }

    fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> SimError {
        let path = path.to_owned();
        move |source| SimError::Io { action, path, source }
    }

    /// Alone until the file that this gives is dropped; the file itself stays, for a lock on a removed file locks nobody.
    fn lock(&self) -> Result<File, SimError> {
        let path = self.dir.join("world.lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(Self::io("open", &path))?;
        file.lock().map_err(Self::io("lock", &path))?;
        Ok(file)
    }

    /// The world in the file.
    pub(super) fn read(&self) -> Result<State, SimError> {
        let path = self.path();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(SimError::Gone { path }),
            Err(source) => return Err(SimError::Io { action: "read", path, source }),
        };
        let damaged = |why: String| SimError::Damaged { path: path.clone(), why };
        let state: State = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
        if state.format != FORMAT {
            return Err(damaged(format!("its format is {}, this version reads {FORMAT}", state.format)));
        }
        checked_speed(state.clock.speed).map_err(|e| damaged(e.to_string()))?;
        Ok(state)
    }

    fn write(&self, state: &State) -> Result<(), SimError> {
        let path = self.path();
        let beside = self.dir.join("world.json.new");
        // What a killed process left half written.
        match fs::remove_file(&beside) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(Self::io("remove", &beside)(e)),
            _ => {}
        }
        let bytes = serde_json::to_vec(state)
            .map_err(|e| Self::io("write", &beside)(std::io::Error::new(ErrorKind::InvalidData, e)))?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)
            .map_err(Self::io("create", &beside))?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(Self::io("write", &beside))?;
        fs::rename(&beside, &path).map_err(Self::io("replace", &path))?;
        File::open(&self.dir).and_then(|d| d.sync_all()).map_err(Self::io("sync", &self.dir))
    }

    /// The world in the file, made first if there is none; `adjust` may refuse it, or change it (then it gives true).
    pub(super) fn open(
        &self,
        make: impl FnOnce() -> State,
        adjust: impl Fn(&mut State) -> Result<bool, SimError>,
    ) -> Result<State, SimError> {
        // The usual case changes nothing and needs no lock: a rename is seen wholly or not at all.
        let there = match self.read() {
            Err(SimError::Gone { .. }) => None,
            other => Some(other?),
        };
        if let Some(mut state) = there
            && !adjust(&mut state)?
        {
            return Ok(state);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(Self::io("create", &self.dir))?;
        let _lock = self.lock()?;
        let (mut state, made) = match self.read() {
            Err(SimError::Gone { .. }) => (make(), true),
            other => (other?, false),
        };
        if adjust(&mut state)? || made {
            self.write(&state)?;
        }
        Ok(state)
    }

    /// Remove the world. Removing none is not an error.
    pub(super) fn remove(&self) -> Result<(), SimError> {
        if !self.dir.exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        for name in ["world.json", "world.json.new"] {
            let path = self.dir.join(name);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(Self::io("remove", &path)(e)),
                _ => {}
            }
        }
        File::open(&self.dir).and_then(|d| d.sync_all()).map_err(Self::io("sync", &self.dir))
    }
}
