//! `gpudeck doctor`: everything that has to be right, each checked, with its remedy.

use std::io::IsTerminal as _;
use std::path::Path;

use super::system_now;
use crate::cli::app::{App, config_file};
use crate::cli::failure::{Exit, Outcome};
use crate::cli::output::{Cell, Column, Style, Table, utc};
use crate::cli::shapes::CheckShape;
use crate::config::home::{mode, writable_by_others};
use crate::config::limits;
use crate::engine::Mode;
use crate::provider::{Finding, FindingStatus};

/// Run it.
pub async fn run(app: &App) -> Outcome {
    app.no_offers_file("doctor")?;
    let mut checks = Vec::new();
    directories(app, &mut checks);
    configuration(app, &mut checks);
    terminal(app, &mut checks);
    ledger(app, &mut checks).await;
    clock(app, &mut checks);
    catalogue(app, &mut checks);
    providers(app, &mut checks).await;
    let exit = if checks.iter().any(|c| c.status == "fail" && c.provider.is_some()) {
        Exit::Provider
    } else if checks.iter().any(|c| c.status == "fail") {
        Exit::Failed
    } else {
        Exit::Done
    };
    if app.out.json {
        app.out.document(&checks)?;
        return Ok(exit);
    }
    let mut table = Table::new(vec![
        Column::new("STATUS"),
        Column::new("PROVIDER").leaves(1),
        Column::new("CHECK"),
        Column::new("DETAIL").cut_to(30),
        Column::new("REMEDY").cut_to(20).leaves(2),
    ]);
    for check in &checks {
        let style = match check.status {
            "ok" => Style::Good,
            "warn" => Style::Warn,
            "fail" => Style::Bad,
            _ => Style::Dim,
        };
        table.row(vec![
            Cell::new(check.status).style(style),
            Cell::new(check.provider.as_deref().unwrap_or(app.out.unknown())),
            Cell::new(&check.check),
            Cell::new(&check.detail),
            Cell::new(check.remedy.as_deref().unwrap_or_default()),
        ]);
    }
    app.out.table(&table)?;
    Ok(exit)
}

fn local(check: &str, status: FindingStatus, detail: impl Into<String>, remedy: &str) -> CheckShape {
    CheckShape {
        check: check.to_owned(),
        provider: None,
        status: status.as_str(),
        detail: detail.into(),
        remedy: (!remedy.is_empty()).then(|| remedy.to_owned()),
    }
}

fn directories(app: &App, checks: &mut Vec<CheckShape>) {
    for (what, dir) in app.home.directories() {
        let shown = dir.display();
        let check = format!("directory of {what}");
        checks.push(match mode(&dir) {
            Ok(mode) if private(mode) => local(&check, FindingStatus::Ok, format!("{shown} (mode {mode:04o})"), ""),
            Ok(mode) => local(
                &check,
                FindingStatus::Warn,
                format!("{shown} is open to others (mode {mode:04o})"),
                &format!("chmod 700 {shown}"),
            ),
            Err(e) => local(&check, FindingStatus::Fail, format!("{shown}: {e}"), "Choose another with --home DIR."),
        });
    }
}

fn configuration(app: &App, checks: &mut Vec<CheckShape>) {
    let (file, _) = config_file(&app.global, &app.home);
    let shown = file.display().to_string();
    // It has been read, else no command would have come this far.
    checks.push(match writable_by_others(&file) {
        Some(warning) => local("configuration", FindingStatus::Warn, warning, &format!("chmod 600 {shown}")),
        None if file.exists() => local("configuration", FindingStatus::Ok, format!("{shown} is valid"), ""),
        None => local("configuration", FindingStatus::Ok, format!("the defaults; {shown} does not exist"), ""),
    });
}

fn terminal(app: &App, checks: &mut Vec<CheckShape>) {
    let term = std::env::var("TERM").unwrap_or_default();
    let name = if term.is_empty() { "no TERM".to_owned() } else { format!("TERM={term}") };
    let (status, detail, remedy) = if !std::io::stdout().is_terminal() {
        (FindingStatus::Skip, format!("standard output is no terminal ({name})"), "")
    } else if term.is_empty() || term == "dumb" {
        (FindingStatus::Warn, format!("{name} cannot show the cockpit"), "Set TERM to what the terminal is.")
    } else {
        let (columns, rows) = crossterm::terminal::size().unwrap_or((0, 0));
        if columns < 80 || rows < 24 {
            (
                FindingStatus::Warn,
                format!("{columns}x{rows}, {name}: columns will be missing"),
                "The cockpit is made for 80x24 and more.",
            )
        } else {
            (FindingStatus::Ok, format!("{columns}x{rows}, {name}"), "")
        }
    };
    checks.push(local("terminal", status, detail, remedy));
    checks.push(if app.out.ascii {
        local(
            "locale",
            FindingStatus::Warn,
            "no UTF-8: ASCII only is drawn",
            "Set LANG to a UTF-8 locale, such as C.UTF-8.",
        )
    } else {
        local("locale", FindingStatus::Ok, "UTF-8", "")
    });
}

async fn ledger(app: &App, checks: &mut Vec<CheckShape>) {
    let path = if app.global.demo { app.home.demo_ledger() } else { app.home.ledger() };
    let shown = path.display().to_string();
    let engine = match app.engine(Mode::OneShot, "cli").await {
        Ok(engine) => engine,
        Err(failure) => {
            let remedy = failure.hint.unwrap_or_else(|| "Look at the file and its directory.".to_owned());
            checks.push(local("ledger", FindingStatus::Fail, failure.message, &remedy));
            return;
        }
    };
    checks.push(match engine.verify_events().await {
        Ok(report) => match report.broken {
            None => {
                let head: String = report.head.chars().take(12).collect();
                let detail = format!(
                    "{shown}: owner {}, {} events, the chain holds (head {head})",
                    engine.owner(),
                    report.events
                );
                local("ledger", FindingStatus::Ok, detail, "")
            }
            Some((seq, why)) => local(
                "ledger",
                FindingStatus::Fail,
                format!("{shown}: the record was changed at event {seq}: {why}"),
                "Restore it from a backup; machines are found again by their marks (`gpudeck orphans`).",
            ),
        },
        Err(error) => local("ledger", FindingStatus::Fail, error.to_string(), "Look at the file and its directory."),
    });
    if let Some(check) = private_file("ledger's mode", &path) {
        checks.push(check);
    }
    engine.shutdown().await;
}

/// Whether nobody else may do anything with it.
const fn private(mode: u32) -> bool {
    mode.is_multiple_of(0o100)
}

fn private_file(check: &str, path: &Path) -> Option<CheckShape> {
    let mode = mode(path).ok()?;
    Some(if private(mode) {
        local(check, FindingStatus::Ok, format!("mode {mode:04o}"), "")
    } else {
        let detail = format!("{} is open to others (mode {mode:04o})", path.display());
        local(check, FindingStatus::Warn, detail, &format!("chmod 600 {}", path.display()))
    })
}

/// A clock that is wrong makes signatures fail and ages lie. No server is asked for the time here; the providers' own
/// checks compare with theirs.
fn clock(app: &App, checks: &mut Vec<CheckShape>) {
    let now = system_now();
    let shown = utc(now);
    checks.push(match app.catalogue().dated() {
        Some(published) if now < published => local(
            "clock",
            FindingStatus::Fail,
            format!("{shown} is before the catalogue was published ({})", utc(published)),
            "Set the system's clock, and have it kept right by NTP.",
        ),
        _ => local("clock", FindingStatus::Ok, shown, ""),
    });
}

fn catalogue(app: &App, checks: &mut Vec<CheckShape>) {
    let catalogue = app.catalogue();
    let dated = catalogue
        .dated()
        .map_or_else(|| "without a date".to_owned(), |d| format!("oldest source of {}", d.format("%Y-%m-%d")));
    let detail = format!("{} rows, {dated}", catalogue.rows().len());
    checks.push(local("catalogue", FindingStatus::Ok, detail, ""));
}

/// All at once: a cloud that hangs holds up none of the others.
async fn providers(app: &App, checks: &mut Vec<CheckShape>) {
    let world = match app.world().await {
        Ok(world) => world,
        Err(failure) => {
            checks.push(local(
                "world",
                FindingStatus::Fail,
                failure.message,
                failure.hint.as_deref().unwrap_or_default(),
            ));
            return;
        }
    };
    let asked = world.providers.iter().map(|provider| async {
        let findings = match tokio::time::timeout(limits::ONE_SHOT_REFRESH, provider.watch.check()).await {
            Ok(findings) => findings,
            Err(_) => vec![Finding {
                check: "answer".to_owned(),
                status: FindingStatus::Fail,
                detail: format!("no answer within {} s", limits::ONE_SHOT_REFRESH.as_secs()),
                remedy: "Look at the network, a proxy, and the provider's own status page.".to_owned(),
            }],
        };
        (provider.watch.id().to_string(), provider.watch.endpoint(), findings)
    });
    for (provider, endpoint, findings) in futures_util::future::join_all(asked).await {
        // In the demo nothing leaves this machine, and the checks say so themselves, as some adapters' do.
        let endpoint = endpoint.filter(|_| !app.global.demo && findings.iter().all(|f| f.check != "endpoint"));
        checks.extend(findings.into_iter().map(|finding| CheckShape {
            check: finding.check,
            provider: Some(provider.clone()),
            status: finding.status.as_str(),
            detail: finding.detail,
            remedy: (!finding.remedy.is_empty()).then_some(finding.remedy),
        }));
        if let Some(endpoint) = endpoint {
            checks.push(CheckShape {
                check: "endpoint".to_owned(),
                provider: Some(provider),
                status: FindingStatus::Warn.as_str(),
                detail: format!("calls go to {endpoint}, not to the provider's own address"),
                remedy: Some("Remove the override from the configuration if it is not meant.".to_owned()),
            });
        }
    }
    checks.extend(world.absent.iter().map(|absent| CheckShape {
        check: "credentials".to_owned(),
        provider: Some(absent.provider.to_string()),
        status: FindingStatus::Skip.as_str(),
        detail: absent.reason.clone(),
        remedy: Some(absent.remedy.clone()),
    }));
}
