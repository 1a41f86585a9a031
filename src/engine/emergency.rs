//! A terminate while the ledger cannot be written: a full disk must not keep machines billing. The wish is noted in a file
//! beside the ledger, the machines are asked to end at once, and once the ledger can be written the operation is begun
//! as if it had been asked for then, so that their end is proved and told.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use super::account::Standing;
use super::boot::reference;
use super::observe;
use super::shared::Shared;
use super::{EngineError, Wish};
use crate::config::limits::WRITTEN_FILE_BYTES;
use crate::domain::text::inert;
use crate::domain::{Actor, JobId};
use crate::provider::Termination;
use crate::store::{IntentRow, IntentState, StoreError};

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    at: DateTime<Utc>,
    actor: Actor,
    job: JobId,
    /// For a person who has to do it by hand.
    machines: Vec<String>,
}

/// What became of one machine.
enum Asked {
    Accepted,
    Refused(String),
}

impl Shared {
    fn emergency_file(&self) -> PathBuf {
        let mut name = self.ledger.path().as_os_str().to_owned();
        name.push(".emergency");
        name.into()
    }

    /// Ask all machines of a job to end although nothing can be written; gives what to tell the operator.
    pub(crate) async fn end_unwritten(&self, job: &JobId, actor: &Actor, cause: &StoreError) -> EngineError {
        let path = self.ledger.path().display().to_string();
        let read = async { self.ledger.read().await?.intents_of(job).await };
        let held: Vec<IntentRow> = match read.await {
            Ok(rows) => rows.into_iter().filter(|i| i.state.may_bill()).collect(),
            Err(error) => {
                let message =
                    format!("{error}. Nothing was done: which machines the job holds is not known without it");
                return EngineError::Ledger { path, message };
            }
        };
        let name = |i: &IntentRow| {
            let id = i.instance.as_ref().map_or_else(|| i.name.clone(), ToString::to_string);
            format!("{} {}", inert(&i.offer.location().to_string()), inert(&id))
        };
        let machines: Vec<String> = held.iter().map(name).collect();
        let note = Note { at: self.now(), actor: actor.clone(), job: job.clone(), machines };
        let file = self.emergency_file();
        let noted = match append(&file, &note) {
            Ok(()) => format!(
                "It is noted in {} and goes on by itself, to proof, once the ledger can be written and the cockpit or \
                 `gpudeck controller` runs",
                file.display()
            ),
            Err(error) => format!(
                "It could not be noted in {} either ({error}): terminate the job again once the ledger can be written",
                file.display()
            ),
        };
        let asked = join_all(held.iter().map(|intent| self.ask_to_end(intent))).await;
        let accepted = asked.iter().filter(|a| matches!(a, Asked::Accepted)).count();
        let refused: Vec<String> = held
            .iter()
            .zip(&asked)
            .filter_map(|(intent, asked)| match asked {
                Asked::Accepted => None,
                Asked::Refused(why) => Some(format!("{}: {why}", name(intent))),
            })
            .collect();
        let mut message = format!(
            "{cause}. Without it {accepted} of {} machines were asked to end; that they are gone is not proved. {noted}",
            held.len()
        );
        if !refused.is_empty() {
            message = format!("{message}. Not asked: {}", refused.join("; "));
        }
        tracing::error!(job = %job, message, "a terminate without the ledger");
        EngineError::Ledger { path, message }
    }

    /// The same care as with the ledger: the right account, our mark.
    async fn ask_to_end(&self, intent: &IntentRow) -> Asked {
        let provider = &intent.offer.provider;
        let Some(target) = reference(intent).filter(|_| intent.state == IntentState::Accepted) else {
            return Asked::Refused("it was asked for and has no id yet".to_owned());
        };
        if let Standing::Other(error) = self.standing(provider, intent.account.as_deref(), "terminate").await {
            return Asked::Refused(error.to_string());
        }
        match self.call_describe(provider, std::slice::from_ref(&target)).await {
            Ok(list) => {
                let seen = list.iter().find(|i| i.id == target.id);
                if seen.is_some_and(|seen| observe::is_disputed(intent, &self.owner, seen)) {
                    return Asked::Refused("it carries another mark by now".to_owned());
                }
            }
            Err(_) if observe::carried_its_mark(intent, &self.owner) => {}
            Err(error) => return Asked::Refused(error.to_string()),
        }
        match self.call_terminate(provider, &target).await {
            Ok(Termination::Accepted(_) | Termination::AlreadyGone) => Asked::Accepted,
            Err(error) => Asked::Refused(error.to_string()),
        }
    }

    /// Begin the operations that could not be written down when they were asked for. The file goes once all are.
    pub(crate) async fn make_up(self: &Arc<Self>) {
        let file = self.emergency_file();
        let Ok(length) = std::fs::metadata(&file).map(|m| m.len()) else { return };
        if length > WRITTEN_FILE_BYTES {
            tracing::error!(file = %file.display(), "too long to be ours; look at it, then remove it");
            return;
        }
        let Ok(text) = std::fs::read_to_string(&file) else { return };
        for line in text.lines().filter(|l| !l.trim().is_empty()) {
            let note: Note = match serde_json::from_str(line) {
                Ok(note) => note,
                // The disk was full: the last line may be cut short.
                Err(error) => {
                    tracing::warn!(file = %file.display(), %error, "a line of it cannot be read and is passed over");
                    continue;
                }
            };
            let begun = match self.propose(Wish::Terminate { job: note.job.clone() }).await {
                Ok(proposal) => self.execute_with(proposal, note.actor, false).await.map(|_| ()),
                Err(error) => Err(error),
            };
            match begun {
                // It has ended already, or is not in this ledger.
                Ok(()) | Err(EngineError::Failed(_) | EngineError::NotFound(_)) => {}
                Err(error) => {
                    tracing::warn!(job = %note.job, %error, "a noted terminate cannot be begun yet; trying again");
                    return;
                }
            }
        }
        if let Err(error) = std::fs::remove_file(&file) {
            tracing::warn!(file = %file.display(), %error, "cannot be removed");
        }
    }
}

/// One line, on the disk when this returns; the file is the user's alone.
fn append(file: &std::path::Path, note: &Note) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut line = serde_json::to_string(note)?;
    // A line before it that was cut short stays a line of its own.
    line.insert(0, '\n');
    line.push('\n');
    let mut file = options.open(file)?;
    file.write_all(line.as_bytes())?;
    file.sync_all()
}
