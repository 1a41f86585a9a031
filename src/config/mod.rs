//! Files, directories, validation. Two kinds of everything that people write: as written (a patch, each value with the
//! line it stands on) and as meant (validated, complete); only the second travels.
//!
//! - [`home`]: the directories, and their modes.
//! - [`settings`]: the configuration file, as written and as meant; [`aws`], [`azure`], [`gcp`]: its sections on clouds.
//! - [`job_file`]: job files and the flags of `place` and `launch`, into a [`crate::domain::JobSpec`].
//! - [`problem`] and [`reader`]: findings with file, line and nearest key, all of them at once.
//! - [`limits`]: every interval, age limit and bound, each with the reason for its number.

pub mod aws;
pub mod azure;
pub mod gcp;
pub mod home;
pub mod job_file;
pub mod limits;
pub mod problem;
pub mod process;
pub mod reader;
pub mod settings;
pub mod system_clock;
pub mod watches;

pub use home::Home;
pub use problem::{Origin, Problem, Problems};
pub use settings::Settings;
