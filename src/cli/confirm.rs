//! The operator's word before anything acts: a `y`, or for what is dear or destroys the job's name typed.

use std::io::{self, BufRead as _, IsTerminal as _};

use super::app::App;
use super::failure::{Exit, Failure};
use crate::config::limits;
use crate::domain::text::inert;

/// What has to be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// `y` or `yes`; anything else is no.
    Yes,
    /// Exactly this.
    Word(String),
}

impl Wanted {
    /// A job's name; of a name that is not ASCII nobody can be sure what it looks like, so the end of the id instead.
    pub fn name_of(name: &str, id: &str) -> Self {
        if !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic() || b == b' ') {
            return Self::Word(name.to_owned());
        }
        Self::Word(last_six(id))
    }

    fn matches(&self, answer: &str) -> bool {
        match self {
            Self::Yes => matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"),
            Self::Word(word) => answer.trim_end_matches(['\r', '\n']) == word,
        }
    }
}

/// The last six characters.
pub fn last_six(id: &str) -> String {
    let count = id.chars().count();
    id.chars().skip(count.saturating_sub(6)).collect()
}

/// Ask, unless `--yes` was said. Without a terminal nobody can be asked, and nothing is done.
pub async fn confirm(app: &App, question: &str, wanted: &Wanted) -> Result<(), Failure> {
    if app.global.yes {
        return Ok(());
    }
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Failure::usage("this acts, and there is no terminal to confirm it on; nothing was done")
            .hint("Add --yes to confirm, or --dry-run to see the plan only."));
    }
    // What was typed before the question was read is no answer to it.
    let _ = nix::sys::termios::tcflush(io::stdin(), nix::sys::termios::FlushArg::TCIFLUSH);
    let prompt = match wanted {
        Wanted::Yes => format!("{question} [y/N] "),
        Wanted::Word(word) => format!("{question} Type {} to confirm: ", inert(word)),
    };
    app.out.prompt(&prompt);
    let read = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).map(|_| answer)
    });
    let answer = match tokio::time::timeout(limits::PLAN_VALID, read).await {
        Ok(Ok(Ok(answer))) => answer,
        Ok(Ok(Err(e))) => return Err(Failure::io("the answer could not be read", &e)),
        Ok(Err(_)) => return Err(Failure::failed("the answer could not be read")),
        Err(_) => {
            return Err(Failure::new(Exit::Failed, "not_confirmed", "not confirmed in time; nothing was done")
                .hint("Prices and stock have moved on: make a new plan."));
        }
    };
    if wanted.matches(&answer) {
        Ok(())
    } else {
        Err(Failure::new(Exit::Failed, "not_confirmed", "not confirmed; nothing was done"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wanted_word_confirms() {
        assert!(Wanted::Yes.matches("y\n") && Wanted::Yes.matches("YES\n"));
        for no in ["", "\n", "n\n", "yep\n", "yy\n"] {
            assert!(!Wanted::Yes.matches(no), "{no:?}");
        }
        let name = Wanted::name_of("llama-ft", "0191-abcdef");
        assert!(name.matches("llama-ft\n") && !name.matches("llama\n") && !name.matches("y\n") && !name.matches("\n"));
    }

    #[test]
    fn f33_a_name_that_cannot_be_told_by_its_look_wants_the_end_of_the_id() {
        assert_eq!(Wanted::name_of("llаma", "0191-abcdef"), Wanted::Word("abcdef".to_owned()));
        assert_eq!(Wanted::name_of("", "abc"), Wanted::Word("abc".to_owned()));
    }
}
