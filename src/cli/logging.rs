//! The log: a file a day under the home's `logs`, private, never standard output. With `-v` standard error, too.

use std::io::{self, Write};
use std::path::Path;

use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer as _, Registry};

use crate::config::limits::LOG_DAYS;
use crate::domain::text::is_hostile;

/// Start logging; `GPUDECK_LOG` may say what to log, module by module. A log that cannot be written stops nothing: what
/// went wrong is given back, to be told.
pub fn start(dir: &Path, verbose: u8, also_stderr: bool) -> Result<(), String> {
    let level = match verbose {
        0 => "info",
        1 => "debug",
        _ => "trace",
    };
    // Other people's crates only speak up when something is wrong, unless everything is asked for.
    let default = if verbose > 1 { level.to_owned() } else { format!("warn,gpudeck={level}") };
    let (filter, wrong) = filter(std::env::var("GPUDECK_LOG").ok().as_deref(), &default);
    crate::config::home::create_private_dir(dir).map_err(|e| e.to_string())?;
    let file = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("gpudeck")
        .filename_suffix("log")
        .max_log_files(LOG_DAYS)
        .build(dir)
        .map_err(|e| format!("the log in {} cannot be written: {e}", dir.display()))?;
    let to_file = fmt::layer().with_ansi(false).with_writer(Clean(file)).with_filter(filter.clone());
    let stderr_filter = if also_stderr && verbose > 0 { filter } else { Targets::new() };
    let to_stderr =
        fmt::layer().with_ansi(false).with_writer(Clean(io::stderr as fn() -> io::Stderr)).with_filter(stderr_filter);
    tracing::subscriber::set_global_default(Registry::default().with(to_file).with(to_stderr))
        .map_err(|e| e.to_string())?;
    wrong.map_or(Ok(()), Err)
}

/// What is logged, and what is wrong with what was asked for: then the default holds. Plain targets and levels, as
/// `warn,gpudeck::engine=debug`; filters on fields would bring a regular expression engine to compile.
fn filter(asked: Option<&str>, default: &str) -> (Targets, Option<String>) {
    let wrong = match asked.map(str::parse::<Targets>) {
        Some(Ok(targets)) => return (targets, None),
        Some(Err(error)) => Some(format!(
            "GPUDECK_LOG is not understood ({error}); use targets and levels, as `warn,gpudeck::engine=debug`"
        )),
        None => None,
    };
    (default.parse().unwrap_or_default(), wrong)
}

/// Lines that reach it lose whatever could steer a terminal: somebody will look at them with one.
struct Clean<M>(M);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Clean<M> {
    type Writer = Cleaner<M::Writer>;
    fn make_writer(&'a self) -> Self::Writer {
        Cleaner(self.0.make_writer())
    }
}

struct Cleaner<W>(W);

impl<W: Write> Write for Cleaner<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(clean(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hostile(c) && c != '\n' && c != '\t' {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{clean, filter};
    use tracing_subscriber::filter::LevelFilter;

    #[test]
    fn op39_a_log_line_cannot_steer_the_terminal_that_shows_it() {
        assert_eq!(clean("name=\u{1b}[2Jx\u{202e}\n"), "name=\\u{1b}[2Jx\\u{202e}\n");
    }

    #[test]
    fn a_wrong_filter_is_told_and_the_default_holds() {
        let (targets, wrong) = filter(Some("gpudeck=loud"), "warn,gpudeck=info");
        assert!(wrong.is_some_and(|w| w.contains("GPUDECK_LOG")));
        assert!(targets.would_enable("gpudeck::engine", &tracing::Level::INFO));
        assert!(!targets.would_enable("hyper", &tracing::Level::INFO));
        let (targets, wrong) = filter(Some("error,gpudeck::store=trace"), "warn,gpudeck=info");
        assert_eq!(wrong, None);
        assert!(targets.would_enable("gpudeck::store", &tracing::Level::TRACE));
        assert!(!targets.would_enable("gpudeck::engine", &tracing::Level::INFO));
        assert_eq!(filter(None, "trace").0.default_level(), Some(LevelFilter::TRACE));
    }
}
