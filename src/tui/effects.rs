//! What the view asks for is done here, in tasks; what comes of it returns as inputs. The loop never waits for any of it.

use tokio::sync::mpsc;

use super::view::{Effect, Incoming, Refusal};
use crate::domain::{Actor, JobState};
use crate::engine::{Engine, EngineError, Wish};

/// What came of effects on its way back. Full only where the loop has stopped taking, and then tasks may wait.
pub(crate) const RETURNS: usize = 64;

/// In words for people: what happened, and what to do.
pub(crate) fn refusal(error: EngineError) -> Refusal {
    let text = error.to_string();
    let (text, next, ranking) = match error {
        EngineError::NoPlace { ranking, .. } => {
            let help = ranking.relax.first().map_or_else(
                || "x shows every refusal.".to_owned(),
                |r| format!("It would fit with {} {} instead of {}.", r.constraint, r.to, r.from),
            );
            (text, help, Some(ranking))
        }
        EngineError::Provider(e) => {
            let request = e.request_id.as_deref().map_or_else(String::new, |id| format!(" (request {id})"));
            let remedy = e.remedy().to_owned();
            (format!("{text}{request}"), remedy, None)
        }
        EngineError::Conflict(_) => (text, "Look again, then decide.".to_owned(), None),
        EngineError::Refused { .. }
        | EngineError::NotFound(_)
        | EngineError::Failed(_)
        | EngineError::Ledger { .. } => (text, String::new(), None),
    };
    Refusal { text, next, ranking }
}

/// Begin an effect that the engine or a worker does. The others are the loop's own.
pub(crate) fn begin(effect: Effect, engine: &Engine, actor: &Actor, back: &mpsc::Sender<Incoming>) {
    let (engine, actor, back) = (engine.clone(), actor.clone(), back.clone());
    match effect {
        Effect::Board(request) => {
            tokio::spawn(async move {
                if let Ok(board) = tokio::task::spawn_blocking(move || request.build()).await {
                    let _ = back.send(Incoming::Board(Box::new(board))).await;
                }
            });
        }
        Effect::Propose(request, wish) => {
            tokio::spawn(async move {
                let result = engine.propose(wish).await.map(Box::new).map_err(refusal);
                let _ = back.send(Incoming::Proposed(request, result)).await;
            });
        }
        Effect::Execute(request, proposal) => {
            tokio::spawn(async move {
                let what = match &proposal.wish {
                    Wish::Launch { spec, .. } => format!("launch of {}", spec.name),
                    Wish::Migrate { .. } | Wish::Terminate { .. } => {
                        format!("{} of the job", proposal.plan.kind.as_str())
                    }
                };
                match engine.execute(*proposal, actor).await {
                    Ok((_, operation)) => {
                        let _ = back
                            .send(Incoming::Executed(request, Ok(format!("{what}: written down and under way"))))
                            .await;
                        let ended = engine
                            .settle(&operation)
                            .await
                            .map(|job| (job.name.clone(), job.state, job.note.clone()))
                            .map_err(refusal);
                        let _ = back.send(Incoming::Settled(outcome(&what, ended))).await;
                    }
                    Err(error) => {
                        let _ = back.send(Incoming::Executed(request, Err(refusal(error)))).await;
                    }
                }
            });
        }
        Effect::Refresh(request) => {
            tokio::spawn(async move {
                let result = engine.refresh().await.map_err(refusal);
                let _ = back.send(Incoming::Refreshed(request, result)).await;
            });
        }
        Effect::Acknowledge(request, seq, note) => {
            tokio::spawn(async move {
                let result = engine.acknowledge(seq, actor, note).await.map_err(refusal);
                let _ = back.send(Incoming::Acknowledged(request, result)).await;
            });
        }
        Effect::Copy(_) | Effect::Redraw | Effect::Suspend | Effect::Quit => {}
    }
}

/// How an operation ended, as told at the bottom of the screen.
fn outcome(what: &str, ended: Result<(String, JobState, Option<String>), Refusal>) -> Result<String, Refusal> {
    let (name, state, note) = ended?;
    let note = note.map_or_else(String::new, |n| format!(": {n}"));
    let text = format!("{what} has ended; {name} is {state}{note}");
    if matches!(state, JobState::Failed | JobState::Preempted) {
        Err(Refusal { text, next: "Its log (L) tells each attempt.".to_owned(), ranking: None })
    } else {
        Ok(text)
    }
}

/// The bytes that put a text on the clipboard (OSC 52), wrapped where tmux or screen stand in between.
pub(crate) fn clipboard(text: &str, multiplexer: Multiplexer) -> Vec<u8> {
    let plain = format!("\x1b]52;c;{}\x07", base64(text.as_bytes()));
    match multiplexer {
        Multiplexer::None => plain.into_bytes(),
        Multiplexer::Tmux => format!("\x1bPtmux;{}\x1b\\", plain.replace('\x1b', "\x1b\x1b")).into_bytes(),
        Multiplexer::Screen => format!("\x1bP{plain}\x1b\\").into_bytes(),
    }
}

/// What stands between us and the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Multiplexer {
    /// Nothing.
    #[default]
    None,
    /// tmux (`TMUX` is set).
    Tmux,
    /// GNU screen (`STY` is set).
    Screen,
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().fold(0_u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            if i <= chunk.len() {
                out.push(char::from(DIGITS[(n >> (18 - 6 * i)) as usize & 63]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn op36_the_clipboard_is_written_through_tmux_and_never_read() {
        assert_eq!(clipboard("hello", Multiplexer::None), b"\x1b]52;c;aGVsbG8=\x07");
        assert_eq!(clipboard("hello", Multiplexer::Tmux), b"\x1bPtmux;\x1b\x1b]52;c;aGVsbG8=\x07\x1b\\");
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"a"), "YQ==");
        assert_eq!(base64(b"ab"), "YWI=");
        assert_eq!(base64(b"abc"), "YWJj");
        assert_eq!(base64(&[0xFF, 0xFE, 0xFD, 0xFC]), "//79/A==");
    }
}
