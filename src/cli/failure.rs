//! Exit codes, and failures as people and scripts are told of them.

use std::fmt;
use std::io;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::Problems;
use crate::domain::text::inert;
use crate::domain::{ErrorClass, ProviderError};
use crate::engine::EngineError;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Failed.
    Failed,
    /// Usage, or an invalid configuration or job file.
    Usage,
    /// No feasible placement.
    NoPlace,
    /// Refused by policy, budget or a read-only session.
    Refused,
    /// A provider could not be reached or refused credentials; what could be shown was shown.
    Provider,
    /// Somebody else changed it.
    Conflict,
    /// Interrupted.
    Interrupted,
}

impl Exit {
    /// The process's exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoPlace => 3,
            Self::Refused => 4,
            Self::Provider => 5,
            Self::Conflict => 6,
            Self::Interrupted => 130,
        }
    }
}

/// A command failed: what, where, why, and what to do.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// A word for scripts: a provider's error class, or `usage`, `invalid`, `no_placement`, `refused`, `ledger`, ….
    pub class: &'static str,
    /// What failed, where and why.
    pub message: String,
    /// Which provider it concerns.
    pub provider: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// What else scripts may want beside the error, by name.
    pub beside: Map<String, Value>,
    /// Nobody is there to read it: the reader of standard output has gone.
    pub silent: bool,
}

/// The result of a command.
pub type Outcome<T = Exit> = Result<T, Failure>;

impl Failure {
    /// A failure with nothing but its class and message.
    pub fn new(exit: Exit, class: &'static str, message: impl Into<String>) -> Self {
        Self { exit, class, message: message.into(), provider: None, hint: None, beside: Map::new(), silent: false }
    }

    /// Wrong use of the command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    /// A failure without an exit code of its own.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, "failed", message)
    }

    /// A file or directory could not be read or written.
    pub fn io(what: &str, error: &io::Error) -> Self {
        Self::new(Exit::Failed, "io", format!("{what}: {error}"))
    }

    /// The operator pressed Ctrl-C, or the process was asked to end.
    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted", "interrupted")
    }

    /// With what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With something for scripts beside the error.
    #[must_use]
    pub fn beside<T: Serialize>(mut self, name: &str, value: &T) -> Self {
        if let Ok(value) = serde_json::to_value(value) {
            self.beside.insert(name.to_owned(), value);
        }
        self
    }

    /// The document that stands for it on standard output.
    pub fn document(&self) -> impl Serialize + '_ {
        Document {
            error: ErrorShape {
                class: self.class,
                message: &self.message,
                provider: self.provider.as_deref(),
                hint: self.hint.as_deref(),
            },
            beside: &self.beside,
        }
    }
}

#[derive(Serialize)]
struct Document<'f> {
    error: ErrorShape<'f>,
    #[serde(flatten)]
    beside: &'f Map<String, Value>,
}

#[derive(Serialize)]
struct ErrorShape<'f> {
    class: &'f str,
    message: &'f str,
    provider: Option<&'f str>,
    hint: Option<&'f str>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// An error on standard output: a reader that has gone is no failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let mut failure = Self::io("the output could not be written", &error);
        if error.kind() == io::ErrorKind::BrokenPipe {
            failure.exit = Exit::Done;
            failure.silent = true;
        }
        failure
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::new(Exit::Usage, "invalid", problems.to_string())
    }
}

impl From<ProviderError> for Failure {
    fn from(error: ProviderError) -> Self {
        let exit = match error.class {
            ErrorClass::Auth | ErrorClass::Transient | ErrorClass::Throttled => Exit::Provider,
            ErrorClass::Conflict => Exit::Conflict,
            ErrorClass::NoCapacity | ErrorClass::Quota => Exit::NoPlace,
            ErrorClass::Invalid | ErrorClass::NotFound | ErrorClass::Unknown => Exit::Failed,
        };
        // The id is what the provider's support asks for first.
        let request = error.request_id.as_deref().map(|id| format!(" (request {})", inert(id))).unwrap_or_default();
        Self {
            provider: Some(error.provider.to_string()),
            hint: Some(error.remedy().to_owned()),
            ..Self::new(exit, error.class.as_str(), format!("{error}{request}"))
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::NoPlace { .. } => Self::new(Exit::NoPlace, "no_placement", message)
                .hint("`gpudeck place --explain` with the same job says why, and what would help."),
            EngineError::Refused { .. } => Self::new(Exit::Refused, "refused", message),
            EngineError::Provider(error) => error.into(),
            EngineError::Conflict(_) => Self::new(Exit::Conflict, "conflict", message)
                .hint("Look at it again (`gpudeck job JOB`), then decide."),
            EngineError::NotFound(_) => {
                Self::new(Exit::Usage, "not_found", message).hint("`gpudeck jobs --all` lists every job.")
            }
            EngineError::Failed(_) => Self::failed(message),
            EngineError::Ledger { .. } => {
                Self::new(Exit::Failed, "ledger", message).hint("`gpudeck doctor` checks the ledger and its directory.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_document_has_the_four_fields_in_order() {
        let failure = Failure::usage("wrong").hint("do right");
        assert_eq!(
            serde_json::to_string(&failure.document()).expect("JSON"),
            r#"{"error":{"class":"usage","message":"wrong","provider":null,"hint":"do right"}}"#
        );
    }

    #[test]
    fn op11_d14_a_refusal_keeps_the_provider_s_code_words_and_request_id() {
        let mut error =
            ProviderError::new(ErrorClass::Quota, &"aws".into(), "RunInstances", "You have \u{1b}[2J no room")
                .code("VcpuLimitExceeded");
        error.request_id = Some("req-7".to_owned());
        let message = Failure::from(error).message;
        for part in ["quota", "VcpuLimitExceeded", "no room", "req-7"] {
            assert!(message.contains(part), "{part} in {message}");
        }
        assert!(!message.contains('\u{1b}'));
    }

    #[test]
    fn every_class_of_a_provider_s_error_has_an_exit_code() {
        for (class, code) in [
            (ErrorClass::Auth, 5),
            (ErrorClass::Transient, 5),
            (ErrorClass::Conflict, 6),
            (ErrorClass::Quota, 3),
            (ErrorClass::Invalid, 1),
        ] {
            let failure = Failure::from(ProviderError::new(class, &"aws".into(), "RunInstances", "no"));
            assert_eq!(failure.exit.code(), code, "{class}");
            assert_eq!(failure.provider.as_deref(), Some("aws"));
        }
    }
}
