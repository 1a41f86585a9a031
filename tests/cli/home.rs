//! What the tests of the command line share: a home of its own for each, and the real binary in it.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A home for one test; removed with it.
pub(crate) struct Home(TempDir);

impl Home {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    /// One whose simulated world goes fast, so that a machine boots within a second.
    pub(crate) fn fast() -> Self {
        let home = Self::new();
        home.write("config.toml", "[demo]\nspeed = 240.0\n");
        home
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file in it.
    pub(crate) fn write(&self, name: &str, text: &str) -> std::path::PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    }

    /// The binary with this home and nothing of the caller's environment that could reach a cloud.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::cargo_bin("gpudeck").expect("the binary");
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path())
            .env("GPUDECK_HOME", self.path())
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .timeout(std::time::Duration::from_mins(2));
        command
    }

    /// Run with these arguments, separated by spaces.
    pub(crate) fn run(&self, arguments: &str) -> Output {
        self.command().args(arguments.split_whitespace()).output().expect("it runs")
    }

    /// One with credentials for AWS and an address at which nobody answers.
    #[cfg(feature = "aws")]
    pub(crate) fn unreachable() -> Self {
        let home = Self::new();
        home.write("config.toml", "[providers.aws]\nendpoint_url = \"http://127.0.0.1:9\"\n");
        home
    }

    /// Run with credentials for AWS, which are nobody's.
    #[cfg(feature = "aws")]
    pub(crate) fn with_credentials(&self, arguments: &str) -> Output {
        let mut command = self.command();
        command.env("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE").env("AWS_SECRET_ACCESS_KEY", "canary-secret-key");
        command.args(arguments.split_whitespace()).output().expect("it runs")
    }

    /// Run in the demo.
    pub(crate) fn demo(&self, arguments: &str) -> Output {
        self.run(&format!("--demo {arguments}"))
    }

    /// Run with `--json`, expect this exit code, and read the one document.
    pub(crate) fn json(&self, arguments: &str, code: i32) -> Value {
        let output = self.run(&format!("{arguments} --json"));
        assert_eq!(output.status.code(), Some(code), "{arguments}: {}", both(&output));
        document(&output)
    }
}

/// The one document on standard output.
pub(crate) fn document(output: &Output) -> Value {
    let text = std::str::from_utf8(&output.stdout).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "one document on one line:\n{text}");
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Both streams, for messages.
pub(crate) fn both(output: &Output) -> String {
    format!("stdout:\n{}\nstderr:\n{}", stdout(output), stderr(output))
}

/// Standard output as text.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Standard error as text.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Assert that an object begins with these fields in this order.
pub(crate) fn has_fields(text: &str, fields: &[&str]) {
    let mut from = 0;
    for field in fields {
        let wanted = format!("\"{field}\":");
        match text[from..].find(&wanted) {
            Some(at) => from += at + wanted.len(),
            None => panic!("no field {field} after {} in {}", &text[..from], &text[from..text.len().min(from + 300)]),
        }
    }
}

/// The contract's fields of an offer.
pub(crate) const OFFER: [&str; 17] = [
    "provider",
    "region",
    "zone",
    "instance_type",
    "accelerator",
    "accelerators",
    "gpu_memory_gib",
    "vcpus",
    "memory_gib",
    "purchase",
    "usd_per_hour",
    "usd_per_gpu_hour",
    "availability",
    "evidence",
    "observed_at",
    "stale",
    "jurisdiction",
];

/// The contract's fields of a job.
pub(crate) const JOB: [&str; 18] = [
    "id",
    "name",
    "state",
    "provider",
    "region",
    "zone",
    "instance_type",
    "accelerator",
    "accelerators",
    "nodes",
    "purchase",
    "usd_per_hour",
    "usd_spent",
    "best_usd_per_hour",
    "started_at",
    "restarts",
    "interruption_risk",
    "instances",
];

/// A market of three offers for `--offers`.
pub(crate) const MARKET: &str = r#"[
 {"provider":"aws","region":"us-east-1","zone":"use1-az4","instance_type":"p5.48xlarge","accelerator":"H100-80GB-SXM","accelerators":8,
  "gpu_memory_gib":80,"vcpus":192,"memory_gib":2048,"purchase":"on_demand","usd_per_hour":55.04,"usd_per_gpu_hour":6.88,
  "availability":"available","evidence":"api","observed_at":"2026-12-01T00:00:00Z","stale":false,"jurisdiction":"US","capacity":4},
 {"provider":"aws","region":"us-east-1","zone":"use1-az4","instance_type":"p5.48xlarge","accelerator":"H100-80GB-SXM","accelerators":8,
  "gpu_memory_gib":80,"vcpus":192,"memory_gib":2048,"purchase":"spot","usd_per_hour":19.76,"usd_per_gpu_hour":2.47,
  "availability":"limited","evidence":"spot_score","observed_at":"2026-12-01T00:00:00Z","stale":false,"jurisdiction":"US","capacity":2},
 {"provider":"gcp","region":"europe-west4","zone":null,"instance_type":"a3-highgpu-8g","accelerator":"H100-80GB-SXM","accelerators":8,
  "gpu_memory_gib":80,"vcpus":208,"memory_gib":1872,"purchase":"on_demand","usd_per_hour":88.48,"usd_per_gpu_hour":11.06,
  "availability":"unknown","evidence":"catalogue","observed_at":"2026-12-01T00:00:00Z","stale":false,"jurisdiction":"EU","capacity":null}
]"#;
