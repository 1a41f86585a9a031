//! Clouds, clock and engine for a command: the simulated ones with `--demo`, else those that there are credentials for.
//! A cloud that cannot be used is told with its reason; its published prices are shown as published.

use std::fs;
use std::sync::Arc;

use super::actor;
use super::app::App;
use super::facts;
use super::failure::{Exit, Failure, Outcome};
use crate::catalogue::{Catalogue, table};
use crate::config::home::create_private_dir;
use crate::config::process;
use crate::config::settings::Settings;
use crate::config::system_clock::SystemClock;
use crate::config::watches::WatchSettings;
use crate::domain::{Clock, GpuHourlyRate, Observation, Purchase};
use crate::engine::{Engine, Mode, Options, PriceWatch};
use crate::network::Network;
use crate::provider::{Absent, Connected, sim};

/// The clouds at hand, and their time.
pub struct World {
    /// The time of that world: virtual in the demo.
    pub clock: Arc<dyn Clock>,
    /// Clouds that can be used.
    pub providers: Vec<Connected>,
    /// Clouds that cannot, and why.
    pub absent: Vec<Absent>,
    /// What published tables say.
    pub published: Vec<Observation>,
}

/// The catalogue in force: the bundled one, with the user's own tables in place of its rows for their providers.
pub(super) fn catalogue(app: &App) -> Catalogue {
    let bundled = Catalogue::bundled();
    let path = app.home.catalogue().join(IMPORTED);
    match fs::read_to_string(&path) {
        Ok(text) => match table::read(&text) {
            Ok(own) => bundled.overlaid(&own),
            Err(error) => {
                app.out.complain(&format!(
                    "warning: {}: {error}; the bundled catalogue is used (`gpudeck catalogue import DIR` makes it anew)",
                    path.display()
                ));
                bundled.clone()
            }
        },
        Err(error) => {
            if error.kind() != std::io::ErrorKind::NotFound {
                app.out.complain(&format!(
                    "warning: {} could not be read ({error}); the bundled catalogue is used",
                    path.display()
                ));
            }
            bundled.clone()
        }
    }
}

/// The file that `catalogue import` writes.
pub(super) const IMPORTED: &str = "imported.tsv";

/// The world of this command.
pub(super) fn world(app: &App) -> Outcome<World> {
    if app.global.demo { demo(app) } else { Ok(live(app)) }
}

fn demo(app: &App) -> Outcome<World> {
    let dir = app.home.demo();
    create_private_dir(&dir).map_err(|e| Failure::io("the simulated world has no place", &e))?;
    let (flags, settings) = (&app.global, &app.settings.demo);
    let options = sim::WorldOptions { seed: flags.seed.or(settings.seed), speed: flags.speed.or(settings.speed) };
    let demo = sim::open(&dir, options, Arc::new(SystemClock)).map_err(|error| match error {
        sim::SimError::SeedDiffers { .. } | sim::SimError::Speed(_) => Failure::usage(error.to_string()),
        sim::SimError::Damaged { .. } | sim::SimError::Gone { .. } | sim::SimError::Io { .. } => {
            Failure::new(Exit::Failed, "demo", error.to_string())
        }
    })?;
    Ok(World {
        clock: demo.clock,
        providers: demo.clouds.into_iter().map(|cloud| guard(app, Connected::full(cloud))).collect(),
        absent: Vec::new(),
        published: Vec::new(),
    })
}

/// Without its acting half in a read-only session.
fn guard(app: &App, connected: Connected) -> Connected {
    if app.global.read_only { connected.into_read_only() } else { connected }
}

fn live(app: &App) -> World {
    let mut providers = Vec::new();
    let mut absent = Vec::new();
    for found in [aws(app), azure(app), gcp(app)] {
        match found {
            Ok(connected) => providers.push(guard(app, connected)),
            Err(why) => absent.push(why),
        }
    }
    let catalogue = app.catalogue();
    for source in catalogue.sources() {
        let known = providers.iter().any(|p| *p.watch.id() == source.provider)
            || absent.iter().any(|a| a.provider == source.provider);
        if !known {
            absent.push(Absent {
                provider: source.provider.clone(),
                reason: "no adapter in this version".to_owned(),
                remedy: "Its published prices are shown; nothing can be launched there yet.".to_owned(),
            });
        }
    }
    let published = catalogue
        .sources()
        .iter()
        .flat_map(|s| catalogue.published_observations(s.provider.as_str(), catalogue.date_of(s.provider.as_str())))
        .collect();
    World { clock: Arc::new(SystemClock), providers, absent, published }
}

/// A variable of the environment that is set to something.
#[cfg(any(feature = "azure", feature = "gcp"))]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What stands around every adapter of the real world: telemetry, circuit breaker, deadlines, retries, rate limits.
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp"))]
fn decorated(connected: Connected) -> Connected {
    use crate::provider::decorators::{Options, RuntimeTimer, decorate};
    let jitter = Arc::new(|| rand::RngExt::random::<f64>(&mut rand::rng()));
    decorate(connected, &Options::new(Arc::new(RuntimeTimer::start()), jitter))
}

#[cfg(any(feature = "azure", feature = "gcp"))]
fn switched_off(provider: &str) -> Absent {
    Absent {
        provider: provider.into(),
        reason: "switched off".to_owned(),
        remedy: format!("Set `enabled = true` under [providers.{provider}] in the configuration."),
    }
}

#[cfg(not(all(feature = "aws", feature = "azure", feature = "gcp")))]
fn not_built_in(provider: &str) -> Absent {
    Absent {
        provider: provider.into(),
        reason: "not built in".to_owned(),
        remedy: format!("Build gpudeck with the feature `{provider}`."),
    }
}

#[cfg(feature = "aws")]
fn aws(app: &App) -> Result<Connected, Absent> {
    crate::provider::aws::connect(&app.settings.providers.aws).map(Connected::full).map(decorated)
}
#[cfg(not(feature = "aws"))]
fn aws(_: &App) -> Result<Connected, Absent> {
    Err(not_built_in("aws"))
}

#[cfg(feature = "azure")]
fn azure(app: &App) -> Result<Connected, Absent> {
    let settings = app.settings.providers.azure.clone().with_environment(&variable);
    if settings.enabled == Some(false) {
        return Err(switched_off("azure"));
    }
    crate::provider::azure::connect(&settings, Arc::new(SystemClock)).map(decorated)
}
#[cfg(not(feature = "azure"))]
fn azure(_: &App) -> Result<Connected, Absent> {
    Err(not_built_in("azure"))
}

#[cfg(feature = "gcp")]
fn gcp(app: &App) -> Result<Connected, Absent> {
    let settings = app.settings.providers.gcp.clone().with_environment(&variable);
    if settings.enabled == Some(false) {
        return Err(switched_off("gcp"));
    }
    crate::provider::gcp::connect(&settings, Arc::new(SystemClock)).map(decorated)
}
#[cfg(not(feature = "gcp"))]
fn gcp(_: &App) -> Result<Connected, Absent> {
    Err(not_built_in("gcp"))
}

/// An engine over the world of this command.
pub(super) async fn engine(app: &App, mode: Mode, via: &str) -> Outcome<Engine> {
    let world = app.world().await?;
    let ledger = if app.global.demo { app.home.demo_ledger() } else { app.home.ledger() };
    let mut options = Options::new(Arc::clone(&world.clock), ledger, actor::current(via));
    options.providers.clone_from(&world.providers);
    options.absent.clone_from(&world.absent);
    options.published.clone_from(&world.published);
    options.network = Network::published();
    options.mode = mode;
    options.watches = watches(&app.settings)?;
    options.process = process::name();
    options.has_ended = process::has_ended;
    options.read_only = app.global.read_only;
    if !app.global.demo {
        options.owner.clone_from(&app.settings.ledger.owner);
    }
    Ok(Engine::start(options).await?)
}

/// The watches of the configuration, with the chips that they mean.
pub(super) fn watches(settings: &Settings) -> Outcome<Vec<PriceWatch>> {
    let of = |(name, watch): (&String, &WatchSettings)| {
        let wrong = |key: &str, why: String| {
            Failure::new(Exit::Usage, "invalid", format!("watches.{name}.{key}: {why}"))
                .hint("Correct the configuration.")
        };
        let below = GpuHourlyRate::from_usd(watch.below_usd_per_gpu_hour)
            .map_err(|e| wrong("below_usd_per_gpu_hour", e.to_string()))?;
        Ok(PriceWatch {
            name: name.clone(),
            accelerators: facts::select(&watch.gpu, None).map_err(|e| wrong("gpu", e))?,
            below,
            count: watch.count.unwrap_or(1),
            purchases: watch.purchase.iter().filter_map(|p| Purchase::parse(p)).collect(),
            providers: watch.providers.iter().map(|p| p.as_str().into()).collect(),
            jurisdictions: watch.jurisdictions.clone(),
        })
    };
    settings.watches.iter().map(of).collect()
}
