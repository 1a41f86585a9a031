//! `gpudeck catalogue update`: fetch the published tables and take them in, all of them or none.

use crate::cli::app::App;
use crate::cli::failure::Outcome;

/// Run it for these providers; for all that the catalogue knows where none is named.
#[cfg(feature = "update")]
pub async fn run(app: &App, providers: &[String]) -> Outcome {
    fetch::run(app, providers).await
}

/// It was left out when this gpudeck was built.
#[cfg(not(feature = "update"))]
#[expect(clippy::unused_async, reason = "the same signature as with the feature")]
pub async fn run(_app: &App, _providers: &[String]) -> Outcome {
    Err(crate::cli::failure::Failure::failed("this gpudeck was built without `catalogue update`").hint(
        "Fetch the tables by other means, then `gpudeck catalogue import DIR`; or build with the feature `update`.",
    ))
}

#[cfg(feature = "update")]
mod fetch {
    use std::path::Path;

    use crate::cli::app::App;
    use crate::cli::commands::catalogue::take_in;
    use crate::cli::facts;
    use crate::cli::failure::{Exit, Failure, Outcome};
    use crate::config::home::{create_private_dir, write_private};
    use crate::config::limits::{CATALOGUE_FETCH, IMPORT_TABLE_BYTES};
    use crate::domain::text::inert;

    pub(super) async fn run(app: &App, providers: &[String]) -> Outcome {
        let known: Vec<String> = app.catalogue().sources().iter().map(|s| s.provider.to_string()).collect();
        for provider in providers {
            facts::known("--provider", provider, &known)?;
        }
        let wanted = if providers.is_empty() { &known } else { providers };
        let home = app.home.catalogue();
        create_private_dir(&home).map_err(|e| Failure::io("the catalogue has no place", &e))?;
        let dir = home.join(format!("fetched-{}", std::process::id()));
        let taken = match fetch_all(app, wanted, &dir).await {
            Ok(()) => take_in(app, &dir, Some(&app.settings.catalogue.url)).map_err(|failure| match failure.exit {
                // Who serves them is to blame, not who asked.
                Exit::Usage => Failure { exit: Exit::Provider, ..failure }
                    .hint("What is served there is not to be used; nothing was taken in, the catalogue is as it was."),
                _ => failure,
            }),
            Err(failure) => Err(failure),
        };
        // What was fetched is in the catalogue now, or is not wanted.
        let _ = std::fs::remove_dir_all(&dir);
        taken
    }

    async fn fetch_all(app: &App, providers: &[String], dir: &Path) -> Outcome<()> {
        create_private_dir(dir).map_err(|e| Failure::io("the tables have no place", &e))?;
        let failed = |text: String| {
            Failure::new(Exit::Provider, "transient", text).hint("Nothing was taken in; the catalogue is as it was.")
        };
        let client = reqwest::Client::builder()
            .timeout(CATALOGUE_FETCH)
            // The address is what the configuration says, and no other.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("gpudeck/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| failed(format!("no connection can be made: {e}")))?;
        let mut found = 0;
        for provider in providers {
            let url = format!("{}/{provider}/vms.csv", app.settings.catalogue.url.trim_end_matches('/'));
            match table(&client, &url).await {
                Ok(Some(text)) => {
                    write_private(&dir.join(format!("{provider}.csv")), &text, true)
                        .map_err(|e| Failure::io("a table could not be kept", &e))?;
                    found += 1;
                }
                Ok(None) => app.out.note(&format!("{provider}: no table there; what is known stays")),
                Err(why) => return Err(failed(format!("{}: {}", inert(&url), inert(&why)))),
            }
        }
        if found == 0 {
            return Err(failed(format!("no table was found under {}", inert(&app.settings.catalogue.url))));
        }
        Ok(())
    }

    /// One table; `None` where there is none.
    async fn table(client: &reqwest::Client, url: &str) -> Result<Option<Vec<u8>>, String> {
        let mut answer = client.get(url).send().await.map_err(|e| causes(&e.without_url()))?;
        if answer.status() == reqwest::StatusCode::NOT_FOUND {
            return Ok(None);
        }
        if !answer.status().is_success() {
            return Err(format!("answered with {}", answer.status()));
        }
        let mut text = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|e| causes(&e.without_url()))? {
            text.extend_from_slice(&piece);
            if text.len() as u64 > IMPORT_TABLE_BYTES {
                return Err(format!("larger than {} MiB", IMPORT_TABLE_BYTES >> 20));
            }
        }
        Ok(Some(text))
    }

    fn causes(error: &(dyn std::error::Error + 'static)) -> String {
        let mut told = error.to_string();
        let mut cause = error.source();
        while let Some(e) = cause {
            told = format!("{told}: {e}");
            cause = e.source();
        }
        told
    }
}
