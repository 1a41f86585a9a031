//! Opening the file, and the one way to read and write it: a transaction.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection, SqlitePool};

use super::crash::{self, CrashPoint, Hold};
use super::error::{Result, StoreError};

/// Appended to, never changed: a ledger in the field has run a prefix of these.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001_ledger.sql"), include_str!("migrations/0002_account.sql")];
/// "gpuD" in the file's header says whose file it is.
const APPLICATION_ID: i64 = 0x6770_7544;
/// Files up to this size are checked page by page at each opening (about 10 ms); larger ones by their length only.
const CHECKED_BYTES: u64 = 16 << 20;
/// How long another process may hold the file before we give up. Its transactions last milliseconds.
const BUSY: Duration = Duration::from_secs(10);

/// How often, and after which pause, opening is tried again while another process makes the file what it must be.
const OPEN_TRIES: u32 = 100;
const OPEN_PAUSE: Duration = Duration::from_millis(50);

/// How to open a ledger.
#[derive(Clone)]
pub struct OpenOptions {
    /// The file.
    pub path: PathBuf,
    /// The id of a new installation, used where the ledger is new.
    pub new_owner: String,
    /// For tests.
    pub crash: Option<Arc<dyn CrashPoint>>,
}

/// The durable record. Cheap to clone.
#[derive(Clone)]
pub struct Ledger {
    pool: SqlitePool,
    path: Arc<Path>,
    owner: Arc<str>,
    /// Which file was opened.
    file: Option<(u64, u64)>,
    crash: Option<Arc<dyn CrashPoint>>,
}

/// A transaction; dropped without [`Tx::commit`] it never happened.
pub struct Tx {
    inner: sqlx::Transaction<'static, sqlx::Sqlite>,
    crash: Option<Arc<dyn CrashPoint>>,
    hold: Option<Hold>,
}

impl Ledger {
    /// Open the ledger, make it where it is missing, bring it up to date.
    pub async fn open(options: OpenOptions) -> Result<Self> {
        let OpenOptions { path, new_owner, crash } = options;
        let hold = crash.as_ref().map(|_| Hold::new());
        prepare_file(&path).await?;
        let mut tries = 0;
        let (pool, owner) = loop {
            match Self::connect(&path, &new_owner).await {
                Ok(opened) => break opened,
                // Two processes that make the ledger at the same moment: SQLite does not wait for the change to the
                // write-ahead log, so we do.
                Err(StoreError::Busy) if tries < OPEN_TRIES => {
                    tries += 1;
                    tokio::time::sleep(OPEN_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        };
        drop(hold);
        let file = identity(&path);
        Ok(Self { pool, path: path.into(), owner: owner.into(), file, crash })
    }

    async fn connect(path: &Path, new_owner: &str) -> Result<(SqlitePool, String)> {
        let connect = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(false)
            .busy_timeout(BUSY)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
        // One connection: SQLite has one writer anyway, and what is read is small. No timers of the pool's own.
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .min_connections(0)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(Duration::from_mins(1))
            .test_before_acquire(false)
            // SQLite rolls back by itself where the disk is full, and the library then counts one transaction too many for
            // ever. Such a connection is closed and another one opened. The ping comes after what is still to be undone.
            .before_acquire(|connection, _| {
                Box::pin(async move {
                    connection.ping().await?;
                    Ok(!connection.is_in_transaction())
                })
            })
            .connect_with(connect)
            .await?;
        let mut connection = pool.acquire().await?;
        check(&mut connection, path).await?;
        migrate(&mut connection).await?;
        let owner = owner(&mut connection, new_owner).await?;
        drop(connection);
        Ok((pool, owner))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The installation's id, made at random when the ledger was made.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Begin to write. Waits for other writers; what follows is seen by nobody until it is committed.
    pub async fn begin(&self) -> Result<Tx> {
        crash::point(self.crash.as_ref(), "begin").await;
        self.start("BEGIN IMMEDIATE").await
    }

    /// Begin to read: one consistent view.
    pub async fn read(&self) -> Result<Tx> {
        crash::alive(self.crash.as_ref()).await;
        self.start("BEGIN DEFERRED").await
    }

    async fn start(&self, statement: &'static str) -> Result<Tx> {
        // A file that was removed or put in another's place goes on taking writes that nobody will ever read.
        if self.file.is_some() && identity(&self.path) != self.file {
            return Err(StoreError::Corrupt {
                detail:
                    "the file was removed or replaced while it was open; end this process, put the file back or begin \
                         anew with the same `owner` in the configuration, and start again"
                        .to_owned(),
            });
        }
        let hold = self.crash.as_ref().map(|_| Hold::new());
        let inner = self.pool.begin_with(statement).await?;
        Ok(Tx { inner, crash: self.crash.clone(), hold })
    }

    /// A number that changes when another process has written.
    pub async fn foreign_version(&self) -> Result<i64> {
        let mut tx = self.read().await?;
        Ok(sqlx::query_scalar("PRAGMA data_version").fetch_one(tx.connection()).await?)
    }

    /// Check every page, for `doctor`.
    pub async fn verify(&self) -> Result<()> {
        let mut tx = self.read().await?;
        quick_check(tx.connection()).await
    }

    /// Close the file; open transactions end first.
    pub async fn close(&self) {
        let _hold = self.crash.as_ref().map(|_| Hold::new());
        self.pool.close().await;
    }
}

impl Tx {
    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.inner
    }

    /// Make it durable. When this returns, it is on the disk.
    pub async fn commit(self) -> Result<()> {
        let Self { inner, crash, hold } = self;
        if crash.as_ref().is_some_and(|c| c.dies("commit")) {
            drop(inner);
            drop(hold);
            return std::future::pending().await;
        }
        inner.commit().await?;
        drop(hold);
        crash::point(crash.as_ref(), "committed").await;
        Ok(())
    }
}

/// Device and number of the file at a path; `None` where there is none.
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// The directory 0700, the file 0600: the ledger tells what runs where and for how much.
async fn prepare_file(path: &Path) -> Result<()> {
    if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
        let mut builder = tokio::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        builder.mode(0o700);
        builder.create(directory).await.map_err(|e| StoreError::io(directory, &e))?;
    }
    let mut options = tokio::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    options.mode(0o600);
    let file = options.open(path).await.map_err(|e| StoreError::io(path, &e))?;
    let length = file.metadata().await.map_err(|e| StoreError::io(path, &e))?.len();
    // SQLite takes a file of fewer than 512 bytes for an empty one and would silently begin anew.
    if (1..512).contains(&length) {
        return Err(StoreError::Corrupt { detail: format!("only {length} bytes are left of it") });
    }
    Ok(())
}

async fn check(connection: &mut SqliteConnection, path: &Path) -> Result<()> {
    // One view: another process may be making the tables between two questions.
    let mut view = connection.begin_with("BEGIN DEFERRED").await?;
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema").fetch_one(&mut *view).await?;
    let version = user_version(&mut view).await?;
    let id: i64 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *view).await?;
    view.rollback().await?;
    let known = newest();
    if version > known {
        return Err(StoreError::Newer { found: version, known });
    }
    if tables > 0 && id != APPLICATION_ID {
        return Err(StoreError::Corrupt { detail: "another program's database".into() });
    }
    let length = tokio::fs::metadata(path).await.map_err(|e| StoreError::io(path, &e))?.len();
    if length <= CHECKED_BYTES { quick_check(connection).await } else { Ok(()) }
}

async fn quick_check(connection: &mut SqliteConnection) -> Result<()> {
    let answer: String = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(connection).await?;
    if answer == "ok" { Ok(()) } else { Err(StoreError::Corrupt { detail: answer }) }
}

/// The newest version that this gpudeck knows.
fn newest() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

async fn user_version(connection: &mut SqliteConnection) -> Result<i64> {
    Ok(sqlx::query_scalar("PRAGMA user_version").fetch_one(connection).await?)
}

async fn migrate(connection: &mut SqliteConnection) -> Result<()> {
    if user_version(connection).await? == newest() {
        return Ok(());
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    // Read again under the lock: another process may have been faster.
    let from = usize::try_from(user_version(&mut transaction).await?).unwrap_or(0);
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(from) {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await?;
        let stamp = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {};", index + 1);
        sqlx::raw_sql(AssertSqlSafe(stamp)).execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(())
}

async fn owner(connection: &mut SqliteConnection, new_owner: &str) -> Result<String> {
    let known = "SELECT value FROM meta WHERE key = 'owner'";
    if let Some(owner) = sqlx::query_scalar::<_, String>(known).fetch_optional(&mut *connection).await? {
        return Ok(owner);
    }
    sqlx::query("INSERT INTO meta (key, value) VALUES ('owner', ?) ON CONFLICT (key) DO NOTHING")
        .bind(new_owner)
        .execute(&mut *connection)
        .await?;
    Ok(sqlx::query_scalar(known).fetch_one(connection).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(path: &Path) -> OpenOptions {
        OpenOptions { path: path.to_path_buf(), new_owner: "owner-1".into(), crash: None }
    }

    #[tokio::test]
    async fn a_new_ledger_is_private_and_keeps_its_owner() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("deep").join("ledger.db");
        let ledger = Ledger::open(options(&path)).await.unwrap();
        assert_eq!(ledger.owner(), "owner-1");
        ledger.close().await;
        let again = Ledger::open(OpenOptions { new_owner: "owner-2".into(), ..options(&path) }).await.unwrap();
        assert_eq!(again.owner(), "owner-1");
        let mut tx = again.begin().await.unwrap();
        let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(tx.connection()).await.unwrap();
        let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(tx.connection()).await.unwrap();
        let keys: i64 = sqlx::query_scalar("PRAGMA foreign_keys").fetch_one(tx.connection()).await.unwrap();
        assert_eq!((mode.as_str(), synchronous, keys), ("wal", 2, 1));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let bits = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
            assert_eq!(bits(&path), 0o600);
            assert_eq!(bits(path.parent().unwrap()), 0o700);
            assert_eq!(bits(&path.with_file_name("ledger.db-wal")), 0o600);
        }
    }

    #[tokio::test]
    async fn e9_damage_is_told_with_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("ledger.db");
        let ledger = Ledger::open(options(&path)).await.unwrap();
        ledger.close().await;
        let good = std::fs::read(&path).unwrap();
        let mut torn = good.clone();
        for byte in torn.iter_mut().skip(4096).take(4096) {
            *byte = 0xA5;
        }
        let short: Vec<u8> = good.iter().copied().take(100).collect();
        let half: Vec<u8> = good.iter().copied().take(good.len() / 2).collect();
        let text = b"this is not a ledger, it is a letter to somebody else entirely".repeat(20);
        for (what, bytes) in [("torn", torn), ("short", short), ("half", half), ("text", text)] {
            std::fs::write(&path, bytes).unwrap();
            match Ledger::open(options(&path)).await {
                Err(error @ StoreError::Corrupt { .. }) => {
                    assert!(error.to_string().contains("gpudeck orphans"), "{what}: {error}");
                }
                Err(other) => panic!("{what}: {other}"),
                Ok(_) => panic!("{what}: opened"),
            }
        }
    }

    #[tokio::test]
    async fn a_newer_ledger_and_another_programs_file_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("ledger.db");
        let ledger = Ledger::open(options(&path)).await.unwrap();
        let mut tx = ledger.begin().await.unwrap();
        sqlx::raw_sql("PRAGMA user_version = 99").execute(tx.connection()).await.unwrap();
        tx.commit().await.unwrap();
        ledger.close().await;
        assert!(matches!(Ledger::open(options(&path)).await, Err(StoreError::Newer { found: 99, .. })));
        let other = home.path().join("other.db");
        let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&other).create_if_missing(true))
            .await
            .unwrap();
        sqlx::raw_sql("CREATE TABLE notes (text TEXT)").execute(&pool).await.unwrap();
        pool.close().await;
        assert!(matches!(Ledger::open(options(&other)).await, Err(StoreError::Corrupt { .. })));
    }

    /// Several processes start at the same moment on a fresh machine: one ledger, one owner, nobody is refused.
    #[test]
    fn a3_many_that_make_the_ledger_at_once_get_the_same_one() {
        for round in 0..20 {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("ledger.db");
            let owners: Vec<String> = std::thread::scope(|scope| {
                let opened: Vec<_> = (0..6)
                    .map(|n| {
                        let path = path.clone();
                        scope.spawn(move || {
                            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                            runtime.block_on(async {
                                let new_owner = format!("owner-{n}");
                                let ledger = Ledger::open(OpenOptions { path, new_owner, crash: None }).await;
                                let ledger = ledger.unwrap_or_else(|e| panic!("round {round}: {e}"));
                                ledger.begin().await.unwrap().commit().await.unwrap();
                                let owner = ledger.owner().to_owned();
                                ledger.close().await;
                                owner
                            })
                        })
                    })
                    .collect();
                opened.into_iter().map(|t| t.join().unwrap()).collect()
            });
            assert!(owners.iter().all(|o| Some(o) == owners.first()), "{owners:?}");
        }
    }

    /// F20: the disk was full for a while. With room again everything goes on, in the same process.
    #[tokio::test]
    async fn f20_a_disk_that_was_full_leaves_nothing_broken() {
        let home = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(options(&home.path().join("ledger.db"))).await.unwrap();
        let actor = crate::domain::Actor { user: "u".into(), via: "cli".into(), host: "h".into() };
        let event = |text: String| super::super::NewEvent {
            at: chrono::DateTime::UNIX_EPOCH,
            actor: &actor,
            kind: crate::domain::EventKind::Note,
            job: None,
            plan: None,
            text,
            data: serde_json::json!({}),
        };
        let mut tx = ledger.begin().await.unwrap();
        // No page more than there are: as on a full disk, and SQLite ends the transaction by itself.
        sqlx::query("PRAGMA max_page_count = 1").execute(tx.connection()).await.unwrap();
        let mut full = false;
        for n in 0..200 {
            full |= tx.append_event(event(format!("{n} {}", "x".repeat(4_000)))).await.is_err();
        }
        assert!(full, "the limit had no effect");
        let _ = tx.commit().await;
        for n in 0..3 {
            let mut tx = ledger.begin().await.expect("a transaction");
            tx.append_event(event(format!("later {n}"))).await.expect("written");
            tx.commit().await.expect("durable");
        }
        let mut tx = ledger.read().await.unwrap();
        let events = tx.events(&super::super::EventQuery::default()).await.unwrap();
        assert!(events.iter().filter(|e| e.text.starts_with("later")).count() == 3, "{}", events.len());
    }

    #[tokio::test]
    async fn f23_a_file_that_is_taken_away_is_noticed_at_once() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("ledger.db");
        let ledger = Ledger::open(options(&path)).await.unwrap();
        ledger.begin().await.unwrap().commit().await.unwrap();
        std::fs::rename(&path, home.path().join("elsewhere")).unwrap();
        for _ in 0..2 {
            assert!(matches!(ledger.begin().await.err().unwrap(), StoreError::Corrupt { .. }));
            assert!(matches!(ledger.read().await.err().unwrap(), StoreError::Corrupt { .. }));
            // Another file in its place is not it either.
            std::fs::write(&path, b"").unwrap();
        }
        std::fs::rename(home.path().join("elsewhere"), &path).unwrap();
        ledger.begin().await.unwrap().commit().await.unwrap();
    }

    #[tokio::test]
    async fn what_is_dropped_before_its_commit_never_happened() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("ledger.db");
        let ledger = Ledger::open(options(&path)).await.unwrap();
        let actor = crate::domain::Actor { user: "u".into(), via: "cli".into(), host: "h".into() };
        let event = |text: &str| super::super::NewEvent {
            at: chrono::DateTime::UNIX_EPOCH,
            actor: &actor,
            kind: crate::domain::EventKind::Note,
            job: None,
            plan: None,
            text: text.to_owned(),
            data: serde_json::json!({}),
        };
        for n in 0..3 {
            let mut tx = ledger.begin().await.unwrap();
            tx.append_event(event(&format!("kept {n}"))).await.unwrap();
            tx.commit().await.unwrap();
            let mut tx = ledger.begin().await.unwrap();
            tx.append_event(event("dropped")).await.unwrap();
            drop(tx);
        }
        let mut tx = ledger.read().await.unwrap();
        let events = tx.events(&super::super::EventQuery::default()).await.unwrap();
        assert_eq!(events.iter().map(|e| e.text.as_str()).collect::<Vec<_>>(), ["kept 0", "kept 1", "kept 2"]);
        let check = tx.verify_chain().await.unwrap();
        assert_eq!((check.events, check.broken), (3, None));
    }

    #[tokio::test]
    async fn a_changed_or_missing_event_shows() {
        let home = tempfile::tempdir().unwrap();
        let actor = crate::domain::Actor { user: "u".into(), via: "cli".into(), host: "h".into() };
        for (number, (statement, at)) in
            [("UPDATE events SET text = 'other' WHERE seq = 2", 2), ("DELETE FROM events WHERE seq = 2", 3)]
                .into_iter()
                .enumerate()
        {
            let path = home.path().join(format!("{number}.db"));
            let ledger = Ledger::open(options(&path)).await.unwrap();
            let mut tx = ledger.begin().await.unwrap();
            for text in ["one", "two", "three"] {
                let event = super::super::NewEvent {
                    at: chrono::DateTime::UNIX_EPOCH,
                    actor: &actor,
                    kind: crate::domain::EventKind::Note,
                    job: None,
                    plan: None,
                    text: text.to_owned(),
                    data: serde_json::json!({ "n": 1 }),
                };
                tx.append_event(event).await.unwrap();
            }
            tx.commit().await.unwrap();
            let mut tx = ledger.begin().await.unwrap();
            // The file's own guard refuses; whoever takes that off is found by the chain.
            assert!(sqlx::raw_sql(statement).execute(tx.connection()).await.is_err());
            drop(tx);
            let mut tx = ledger.begin().await.unwrap();
            sqlx::raw_sql("DROP TRIGGER events_are_not_changed; DROP TRIGGER events_are_not_deleted")
                .execute(tx.connection())
                .await
                .unwrap();
            sqlx::raw_sql(statement).execute(tx.connection()).await.unwrap();
            assert_eq!(tx.verify_chain().await.unwrap().broken.map(|(seq, _)| seq), Some(at));
        }
    }
}
