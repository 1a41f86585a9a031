//! The directories: one under `--home` or `GPUDECK_HOME`, else those of the XDG standard. Made 0700, files in them 0600.
//! Nothing is ever read from the current directory: a checkout must not be able to configure the tool that is run in it.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Where everything is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    config: PathBuf,
    data: PathBuf,
    cache: PathBuf,
    state: PathBuf,
}

/// No home directory is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no home directory; say where to keep things with --home DIR or GPUDECK_HOME")]
pub struct NoHome;

impl Home {
    /// Everything under one directory.
    pub fn under(dir: &Path) -> Self {
        Self { config: dir.to_owned(), data: dir.to_owned(), cache: dir.join("cache"), state: dir.to_owned() }
    }

    /// The directories of the XDG standard.
    pub fn xdg() -> Result<Self, NoHome> {
        let dirs = directories::ProjectDirs::from("", "", "gpudeck").ok_or(NoHome)?;
        Ok(Self {
            config: dirs.config_dir().to_owned(),
            data: dirs.data_dir().to_owned(),
            cache: dirs.cache_dir().to_owned(),
            state: dirs.state_dir().unwrap_or_else(|| dirs.data_dir()).to_owned(),
        })
    }

    /// Under `dir` where one is given, else of the XDG standard.
    pub fn choose(dir: Option<&Path>) -> Result<Self, NoHome> {
        match dir {
            Some(dir) => Ok(Self::under(dir)),
            None => Self::xdg(),
        }
    }

    /// The configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }
    /// The user's own themes.
    pub fn themes(&self) -> PathBuf {
        self.config.join("themes")
    }
    /// The ledger of the real world.
    pub fn ledger(&self) -> PathBuf {
        self.data.join("ledger.sqlite")
    }
    /// The simulated world.
    pub fn demo(&self) -> PathBuf {
        self.data.join("demo")
    }
    /// The ledger of the simulated world; never the real one.
    pub fn demo_ledger(&self) -> PathBuf {
        self.demo().join("ledger.sqlite")
    }
    /// Catalogue tables that the user imported; they stand before the bundled ones.
    pub fn catalogue(&self) -> PathBuf {
        self.data.join("catalogue")
    }
    /// What can be fetched again.
    pub fn cache(&self) -> &Path {
        &self.cache
    }
    /// Log files.
    pub fn logs(&self) -> PathBuf {
        self.state.join("logs")
    }

    /// Every directory, with what it holds.
    pub fn directories(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("configuration", self.config.clone()),
            ("ledger", self.data.clone()),
            ("cache", self.cache.clone()),
            ("logs", self.logs()),
        ]
    }

    /// Make the directories that are missing, 0700. Those that exist are left as they are: `doctor` tells their modes.
    pub fn create(&self) -> io::Result<()> {
        for (_, dir) in self.directories() {
            create_private_dir(&dir)?;
        }
        Ok(())
    }
}

/// Make a directory and its parents, 0700; one that exists is left as it is.
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|e| io::Error::new(e.kind(), format!("the directory {} could not be made: {e}", dir.display())))
}

/// Write a new file, 0600; an existing one is refused unless `replace`.
pub fn write_private(path: &Path, content: &[u8], replace: bool) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).mode(0o600);
    if replace {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let mut file = options.open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// The permission bits of a file or directory.
pub fn mode(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o777)
}

/// What is wrong with a configuration file's mode: others could write into it, and configuration is code (it can name
/// endpoints and credentials).
pub fn writable_by_others(path: &Path) -> Option<String> {
    let mode = mode(path).ok()?;
    (mode & 0o022 != 0).then(|| {
        format!("{} can be written by others (mode {mode:04o}); make it private: chmod 600 {0}", path.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_and_files_are_private() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let home = Home::under(&dir.path().join("h"));
        home.create().expect("directories");
        for (_, dir) in home.directories() {
            assert_eq!(mode(&dir).expect("mode"), 0o700, "{}", dir.display());
        }
        let file = home.config_file();
        write_private(&file, b"x", false).expect("written");
        assert_eq!(mode(&file).expect("mode"), 0o600);
        assert_eq!(write_private(&file, b"y", false).expect_err("refused").kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(writable_by_others(&file), None);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("chmod");
        assert!(writable_by_others(&file).is_some_and(|w| w.contains("0666")));
    }

    #[test]
    fn the_demo_never_writes_into_the_real_ledger() {
        let home = Home::under(Path::new("/h"));
        assert_ne!(home.ledger(), home.demo_ledger());
        assert!(home.demo_ledger().starts_with(home.demo()));
    }
}
