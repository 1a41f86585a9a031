//! What a machine runs at its start.

use std::fmt::Write;

use crate::domain::JobSpec;

/// The start script of a node, where the job runs anything. The same for the same job and node, always: a provider
/// refuses a token that comes back with another body.
pub(crate) fn start_script(spec: &JobSpec, node: u32) -> Option<String> {
    let run = spec.run.as_deref()?;
    let mut script = String::from("#!/bin/sh\nset -eu\n");
    let mut variables: Vec<(&str, String)> = spec.env.iter().map(|(k, v)| (k.as_str(), v.clone())).collect();
    variables.push(("GPUDECK_NODE", node.to_string()));
    variables.push(("GPUDECK_NODES", spec.resources.nodes.to_string()));
    if let Some(uri) = &spec.data.checkpoint_uri {
        variables.push(("GPUDECK_CHECKPOINT_URI", uri.clone()));
    }
    for (name, value) in &variables {
        if is_variable_name(name) {
            let _ = writeln!(script, "export {name}={}", quoted(value));
        }
    }
    match &spec.image {
        Some(image) => {
            script.push_str("exec docker run --rm --gpus all --network host --ipc host");
            for (name, _) in variables.iter().filter(|(name, _)| is_variable_name(name)) {
                let _ = write!(script, " --env {name}");
            }
            let _ = writeln!(script, " -- {} sh -c {}", quoted(image), quoted(run));
        }
        None => {
            let _ = writeln!(script, "exec sh -c {}", quoted(run));
        }
    }
    Some(script)
}

fn is_variable_name(name: &str) -> bool {
    name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// In single quotes, in which a shell reads nothing but the closing quote.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_escapes_from_quotes() {
        assert_eq!(super::quoted("a'; rm -rf /; '"), r"'a'\''; rm -rf /; '\'''");
        assert!(super::is_variable_name("WANDB_MODE"));
        assert!(!super::is_variable_name("A=1; rm"));
        assert!(!super::is_variable_name(""));
    }
}
