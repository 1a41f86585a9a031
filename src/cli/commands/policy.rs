//! `gpudeck doctor --print-policy`: the least rights that a cloud must grant, as the document that it takes.

use crate::cli::app::App;
use crate::cli::failure::{Exit, Failure, Outcome};

/// Cloud, rights, and the document.
const POLICIES: [(&str, &str, &str); 6] = [
    ("aws", "read", include_str!("../../../data/policies/aws-read.json")),
    ("aws", "operate", include_str!("../../../data/policies/aws-operate.json")),
    ("azure", "read", include_str!("../../../data/policies/azure-read.json")),
    ("azure", "operate", include_str!("../../../data/policies/azure-operate.json")),
    ("gcp", "read", include_str!("../../../data/policies/gcp-read.json")),
    ("gcp", "operate", include_str!("../../../data/policies/gcp-operate.json")),
];

/// How each cloud takes its document.
const USES: [(&str, &str); 3] = [
    ("aws", "aws iam create-policy --policy-name gpudeck --policy-document file://FILE"),
    ("azure", "az role definition create --role-definition FILE"),
    ("gcp", "gcloud iam roles create gpudeck --project PROJECT --file FILE"),
];

/// Print it.
pub fn run(app: &App, wanted: &[String]) -> Outcome {
    let cloud = wanted.first().map_or("", String::as_str);
    let rights = wanted.get(1).map_or("read", String::as_str);
    let found = POLICIES.iter().find(|(c, r, _)| *c == cloud && *r == rights);
    let Some((_, _, text)) = found else {
        return Err(Failure::usage("--print-policy takes aws, azure or gcp, and then read or operate")
            .hint("For example `gpudeck doctor --print-policy aws operate`."));
    };
    if app.out.json {
        let document: serde_json::Value = serde_json::from_str(text)
            .map_err(|e| Failure::failed(format!("the bundled policy cannot be read: {e}")))?;
        app.out.document(&document)?;
    } else {
        app.out.text(text)?;
        if let Some((_, how)) = USES.iter().find(|(c, _)| *c == cloud) {
            app.out.note(how);
        }
    }
    Ok(Exit::Done)
}
