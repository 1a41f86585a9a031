//! What the screens look like, at the sizes that operators have. Changes show up as differences to review.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::{Availability, Purchase};
use crate::market::Snapshot;
use crate::tui::testing::*;
use crate::tui::theme::ColorChoice;
use crate::tui::view::{Incoming, Refusal};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

fn shot(name: &str, runner: &Runner) {
    let (w, h) = runner.view.size();
    insta::assert_snapshot!(format!("{name}_{w}x{h}"), runner.screen());
}

#[test]
fn panes() {
    for (w, h) in SIZES {
        for (name, keys) in
            [("capacity", "1"), ("prices", "2"), ("latency", "3"), ("jobs", "4"), ("events", "e"), ("heat", "1 v")]
        {
            let mut runner = Runner::new(state(), w, h);
            runner.keys(keys);
            if name != "events" {
                runner.keys("z");
            }
            shot(&format!("pane_{name}"), &runner);
        }
        shot("all_panes", &Runner::new(state(), w, h));
    }
    shot("one_pane", &Runner::new(state(), 60, 15));
}

#[test]
fn states() {
    for (w, h) in SIZES {
        shot("state_loading", &Runner::new(empty_state(), w, h));
        let mut late = Runner::new(empty_state(), w, h);
        late.wait(Duration::from_secs(12));
        shot("state_error", &late);
        let mut none = empty_state();
        none.market = Arc::new(Snapshot::from_offers(now(), Vec::new()));
        none.absent = Vec::new().into();
        shot("state_empty", &Runner::new(none, w, h));
        let mut odd = state();
        let mut jobs = odd.jobs.to_vec();
        jobs[0].name = "ein-sehr-langer-name-für-einen-auftrag-den-niemand-so-nennen-sollte-0000042".into();
        jobs[1].name = "東京-大規模言語モデル-微調整".into();
        jobs[2].name = "escape\u{1b}[31mred".into();
        odd.jobs = jobs.into();
        let mut all = offers();
        all.push(offer(
            "a-cloud-with-a-long-name/a-region-with-an-even-longer-name/zone-b",
            "an.instance.type.that.is.far.too.long",
            "unknown:SomeChip-9000-MegaWide",
            16,
            Purchase::OnDemand,
            Some("12345.67"),
            Availability::Available,
        ));
        odd.market = Arc::new(Snapshot::from_offers(now(), all).with_feeds(odd.market.feeds().to_vec()));
        let mut runner = Runner::new(odd, w, h);
        shot("state_long_names", &runner);
        runner.keys("4 z");
        shot("state_long_names_jobs", &runner);
    }
}

#[test]
fn dialogs() {
    for (w, h) in SIZES {
        let open = |keys: &str| {
            let mut runner = Runner::new(state(), w, h);
            runner.keys(keys);
            runner
        };
        shot("dialog_help", &open("4 ?"));
        shot("dialog_details_job", &open("4 j d"));
        shot("dialog_details_offer", &open("1 d"));
        shot("dialog_details_gpu", &open("2 d"));
        shot("dialog_details_event", &open("e d"));
        shot("dialog_log", &open("4 L"));
        shot("dialog_launch", &open("1 j l"));
        let mut wrong = open("1 j l");
        wrong.keys("tab ctrl-u").text("H1000").keys("enter");
        shot("dialog_launch_wrong", &wrong);
        let mut making = open("1 j l enter");
        shot("dialog_plan_making", &making);
        making.propose();
        shot("dialog_plan_launch", &making);
        making.keys("tab enter");
        shot("dialog_confirm_launch", &making);
        let mut migrate = open("4 m");
        migrate.propose();
        shot("dialog_plan_migrate", &migrate);
        migrate.keys("tab enter");
        migrate.wait(Duration::from_secs(1));
        shot("dialog_confirm_migrate", &migrate);
        let mut terminate = open("4 t");
        terminate.propose();
        terminate.wait(Duration::from_secs(1));
        terminate.text("llama-ft").keys("tab");
        shot("dialog_confirm_terminate", &terminate);
        let mut refused = open("1 l enter");
        let request = refused.view.requests;
        refused.take(Incoming::Proposed(
            request,
            Err(Refusal {
                text: "no feasible placement for 'h100'".into(),
                next: "It would fit with purchase.max_usd_per_gpu_hour 4.20 instead of 4.00.".into(),
                ranking: Some(Box::new(ranking())),
            }),
        ));
        shot("dialog_plan_refused", &refused);
        refused.keys("x");
        shot("dialog_explain", &refused);
        let mut command = open("1 :");
        command.text("t").keys("tab");
        shot("dialog_command", &command);
        let mut filter = open("1 /");
        filter.text("gpu:h100 prise<4");
        shot("dialog_filter_wrong", &filter);
        shot("dialog_acknowledge", &open("e a"));
        shot("dialog_quit", &open("q"));
    }
}

#[test]
fn roles_of_cells() {
    let runner = Runner::new(state(), 120, 40);
    insta::assert_snapshot!("roles_120x40", roles_of(&runner.buffer(), &runner.view));
}

#[test]
fn ascii_and_modes() {
    let mut plain = session();
    plain.ascii = true;
    plain.colors = ColorChoice::Never;
    plain.demo = true;
    plain.read_only = true;
    shot("ascii", &Runner::with(plain, state(), 120, 40));
}
