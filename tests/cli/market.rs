//! `offers`, `spreads`, `place`, `latency`, `catalogue`: documents and exit codes, on the demo and on markets from files.

use crate::home::{Home, MARKET, OFFER, both, document, has_fields, stderr, stdout};
use serde_json::Value;

#[test]
fn offers_have_the_contract_s_fields_in_order() {
    let home = Home::new();
    let output = home.demo("offers --gpu H100 --json");
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    let text = stdout(&output);
    has_fields(&text, &OFFER);
    let offers = document(&output);
    let offers = offers.as_array().unwrap();
    assert!(offers.len() > 20, "{}", offers.len());
    for offer in offers {
        assert!(offer["accelerator"].as_str().unwrap().starts_with("H100"), "{offer}");
        assert!(["on_demand", "spot", "reserved"].contains(&offer["purchase"].as_str().unwrap()), "{offer}");
        assert!(["available", "limited", "none", "unknown"].contains(&offer["availability"].as_str().unwrap()));
        assert_eq!(offer["evidence"], "simulated", "{offer}");
        assert_ne!(offer["usd_per_hour"], 0, "a price that is not known is null: {offer}");
        let at = offer["observed_at"].as_str().unwrap();
        assert!(at.ends_with('Z') && !at.contains('.') && chrono::DateTime::parse_from_rfc3339(at).is_ok(), "{at}");
        if let Some(usd) = offer["usd_per_gpu_hour"].as_f64() {
            assert!((usd * 1e6 - (usd * 1e6).round()).abs() < 1e-3, "at most six decimals: {usd}");
        }
    }
}

#[test]
fn b12_offers_are_sorted_by_price_and_filters_hold() {
    let home = Home::new();
    let offers = home.json("--demo offers --gpu H100 --purchase spot --count 8 --max-price 9", 0);
    let prices: Vec<f64> = offers.as_array().unwrap().iter().map(|o| o["usd_per_gpu_hour"].as_f64().unwrap()).collect();
    assert!(
        !prices.is_empty() && prices.windows(2).all(|w| w[0] <= w[1]) && prices.iter().all(|p| *p <= 9.0),
        "{prices:?}"
    );
    for offer in offers.as_array().unwrap() {
        assert!(offer["purchase"] == "spot" && offer["accelerators"].as_f64().unwrap() >= 8.0, "{offer}");
    }
    let dearest = home.json("--demo offers --sort -usd_per_hour --limit 3 --provider aws", 0);
    let dearest = dearest.as_array().unwrap();
    assert_eq!(dearest.len(), 3);
    assert!(dearest[0]["usd_per_hour"].as_f64() >= dearest[2]["usd_per_hour"].as_f64());
    assert!(dearest.iter().all(|o| o["provider"] == "aws"));
    let output = home.demo("offers --gpu H900");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("H900"));
}

#[test]
fn b11_spreads_span_what_offers_show() {
    let home = Home::new();
    let market = home.write("market.json", MARKET);
    let spreads = home.json(&format!("spreads --offers {}", market.display()), 0);
    let spread = &spreads[0];
    assert_eq!(spread["accelerator"], "H100-80GB-SXM");
    assert_eq!(spread["offers"], 3);
    assert_eq!(spread["min"]["usd_per_gpu_hour"], 2.47);
    assert_eq!(spread["median_usd_per_gpu_hour"], 6.88);
    assert_eq!(spread["max"]["usd_per_gpu_hour"], 11.06);
    let percent = spread["spread_percent"].as_f64().unwrap();
    assert!((percent - (11.06 - 2.47) / 2.47 * 100.0).abs() < 0.01, "{percent}");
    has_fields(&spreads.to_string().replace('\n', ""), &["accelerator"]);
}

#[test]
fn place_ranks_a_market_from_a_file() {
    let home = Home::new();
    let market = home.write("market.json", MARKET);
    let output = home.run(&format!("place --gpu H100 --count 8 --offers {} --json", market.display()));
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    let text = stdout(&output);
    has_fields(&text, &["request", "snapshot", "observed_at", "offers", "candidates", "rank", "nodes"]);
    has_fields(
        &text,
        &[
            "candidates",
            "usd_per_hour",
            "usd_total",
            "breakdown",
            "compute",
            "egress",
            "switching",
            "risk",
            "commitment",
        ],
    );
    let place = document(&output);
    assert_eq!(place["snapshot"]["offers"], 3);
    let first = &place["candidates"][0];
    assert_eq!((&first["rank"], &first["nodes"][0]["purchase"]), (&Value::from(1), &Value::from("spot")), "{first}");
    assert_eq!(first["nodes"][0]["count"], 1);
    assert_eq!(first["usd_per_hour"], 19.76);
}

#[test]
fn a_place_that_finds_nothing_ends_with_3_and_the_same_shape() {
    let home = Home::new();
    let market = home.write("market.json", MARKET);
    let place = home.json(&format!("place --gpu H100 --count 8 --max-price 1 --offers {}", market.display()), 3);
    assert_eq!(place["candidates"], serde_json::json!([]));
    let refused: u64 = place["rejected"].as_array().unwrap().iter().map(|r| r["offers"].as_u64().unwrap()).sum();
    assert_eq!(refused, 3, "{}", place["rejected"]);
    assert_eq!(place["rejected"][0]["reason"], "price");
    let relax = &place["relax"][0];
    assert_eq!(relax["constraint"], "purchase.max_usd_per_gpu_hour", "{relax}");
    let output = home.run(&format!("place --gpu H100 --count 8 --max-price 1 --offers {}", market.display()));
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("price"), "{}", both(&output));
}

#[test]
fn a_bad_market_file_names_row_and_field() {
    let home = Home::new();
    let market = home.write("market.json", &MARKET.replace("\"accelerators\":8,", "\"accelerators\":\"8\","));
    let output = home.run(&format!("place --gpu H100 --offers {}", market.display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("row 1: accelerators"), "{}", both(&output));
}

#[test]
fn a_job_file_with_findings_ends_with_2_and_all_of_them() {
    let home = Home::new();
    let job = home.write(
        "job.toml",
        "name = \"x\"\n[resources]\naccelerator = [\"H100\"]\naccelerators = [\"H100x\"]\ncount = 0\n",
    );
    let output = home.demo(&format!("place -f {}", job.display()));
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    let text = stderr(&output);
    for part in ["job.toml:3", "unknown key 'accelerator'", "'accelerators'", "job.toml:4", "H100x", "job.toml:5"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let error = home.json(&format!("--demo place -f {}", job.display()), 2);
    assert_eq!(error["error"]["class"], "invalid");
}

#[test]
fn op39_a_hostile_job_file_reaches_no_stream_raw() {
    let home = Home::new();
    let job = home.write("evil\u{1b}]0;x\u{7}.toml", "name = \"a\\u001b]52;c;AAAA\\u0007\\u202eb\"\n\"k\\u001b[2J\" = 1\n[resources]\naccelerators = [\"\\u009b31m\"]\n");
    for json in [&["--json"][..], &[]] {
        let output = home.command().args(["--demo", "launch", "--yes", "-f"]).arg(&job).args(json).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", both(&output));
        for bytes in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(bytes);
            assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
        }
    }
}

#[test]
fn shipped_examples_are_valid_and_can_be_ranked() {
    let home = Home::new();
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/jobs");
    let mut seen = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let output = home.demo(&format!("place --json -f {}", path.display()));
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}: {}", path.display(), both(&output));
        let place = document(&output);
        assert!(place["request"]["name"].is_string());
        seen += 1;
    }
    assert!(seen >= 4);
}

#[test]
fn explain_tells_every_reason() {
    let home = Home::new();
    let market = home.write("market.json", MARKET);
    let output =
        home.run(&format!("place --gpu H100 --count 8 --jurisdiction EU --explain --offers {}", market.display()));
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    assert!(stdout(&output).contains("jurisdiction"), "{}", both(&output));
}

#[test]
fn latency_says_where_each_figure_comes_from() {
    let home = Home::new();
    let output = home.run("latency --from aws/us-east-1 --to aws/eu-west-1 --json");
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    has_fields(
        &stdout(&output),
        &["from", "to", "p50_ms", "p99_ms", "jitter_ms", "loss_percent", "samples", "source", "observed_at"],
    );
    let row = &document(&output)[0];
    assert_eq!((&row["from"], &row["to"]), (&Value::from("aws/us-east-1"), &Value::from("aws/eu-west-1")));
    assert!(["published", "estimated"].contains(&row["source"].as_str().unwrap()), "{row}");
    let output = home.run("latency --from aws/us-east-l");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("aws/us-east-1"), "{}", both(&output));
}

#[test]
fn c5_without_any_credentials_published_prices_are_shown_as_published() {
    let home = Home::new();
    let output = home.run("offers --gpu H100 --json");
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    let offers = document(&output);
    let offers = offers.as_array().unwrap();
    assert!(!offers.is_empty());
    for offer in offers {
        assert_eq!(
            (&offer["availability"], &offer["evidence"]),
            (&Value::from("unknown"), &Value::from("catalogue")),
            "c3: {offer}"
        );
        assert_eq!(offer["price_is_live"], false);
    }
    assert!(stderr(&output).contains("aws ("), "says why not live: {}", stderr(&output));
}

#[test]
fn catalogue_import_stands_before_the_bundled_tables() {
    let home = Home::new();
    let dir = home.path().join("tables");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(
        dir.join("lambda.csv"),
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n\
         gpu_8x_h100_sxm5,H100,8,208,1800,12.34,us-south-9,,\n",
    )
    .unwrap();
    let output = home.run(&format!("catalogue import {}", dir.display()));
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    let rows = home.json("catalogue show --provider lambda", 0);
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(
        (&rows[0]["region"], &rows[0]["on_demand_usd_per_hour"]),
        (&Value::from("us-south-9"), &Value::from(12.34))
    );
    assert!(!home.json("catalogue show --provider aws", 0).as_array().unwrap().is_empty());
    assert_eq!(home.run("catalogue import /nowhere").status.code(), Some(2));
}

#[test]
fn the_world_s_speed_is_a_flag_that_stands_above_the_configuration() {
    let home = Home::fast();
    let detail = |flags: &str| {
        let checks = home.json(&format!("--demo {flags} doctor"), 0);
        checks.to_string()
    };
    assert!(detail("").contains("at 240x speed"));
    assert!(detail("--speed 7.5").contains("at 7.5x speed"));
}

#[test]
fn b11_spreads_are_told_by_region_and_zone() {
    let home = Home::new();
    let regions = home.json("--demo spreads --gpu H100 --by region", 0);
    let regions = regions.as_array().unwrap();
    assert!(regions.len() > 10 && regions.iter().all(|s| s["region"].is_string() && s["zone"].is_null()));
    let zones = home.json("--demo spreads --gpu H100 --by zone", 0);
    assert!(zones.as_array().unwrap().iter().any(|s| s["zone"].is_string()));
    let all = home.json("--demo spreads --gpu H100", 0);
    assert!(all.as_array().unwrap().iter().all(|s| s["region"].is_null()));
}

#[test]
fn one_seed_is_one_market_and_another_seed_is_refused() {
    let (a, b) = (Home::new(), Home::new());
    let shapes = |home: &Home| -> Vec<String> {
        let offers = home.json("--demo --seed 5 offers --gpu A100-80GB --sort instance_type", 0);
        offers
            .as_array()
            .unwrap()
            .iter()
            .filter(|o| o["purchase"] == "on_demand")
            .map(|o| format!("{}{}{}", o["region"], o["instance_type"], o["usd_per_hour"]))
            .collect()
    };
    assert_eq!(shapes(&a), shapes(&b));
    assert_eq!(a.run("--demo --seed 6 offers").status.code(), Some(2));
    assert_eq!(a.run("--demo reset").status.code(), Some(0));
    assert_eq!(a.run("--demo --seed 6 offers").status.code(), Some(0));
}

#[cfg(feature = "aws")]
#[test]
fn op15_c7_a_provider_that_is_not_reached_is_told_and_ends_with_5() {
    let home = Home::unreachable();
    for command in ["offers --provider aws --limit 3", "spreads --gpu H100", "place --gpu H100 --count 8"] {
        let output = home.with_credentials(command);
        assert_eq!(output.status.code(), Some(5), "{command}: {}", both(&output));
        let told = stderr(&output);
        assert!(told.contains("warning: aws is down: aws ") && told.contains("refused"), "{command}: {told}");
        assert!(!told.contains("canary-secret-key"));
        let output = home.with_credentials(&format!("{command} --json"));
        assert_eq!(output.status.code(), Some(5), "{command}: {}", both(&output));
        // What could be shown was shown, and nothing else is on standard output.
        let shown = document(&output);
        assert!(shown.is_array() || shown["candidates"].is_array(), "{command}: {shown}");
    }
    let offers = document(&home.with_credentials("offers --provider aws --limit 3 --json"));
    assert_eq!(offers.as_array().map(Vec::len), Some(3), "its published prices: {offers}");
    assert!(offers[0]["evidence"] == "catalogue", "{offers}");
}

#[cfg(feature = "aws")]
#[test]
fn op15_c7_a_launch_at_a_provider_that_is_not_reached_tells_the_cause() {
    let home = Home::unreachable();
    let launch = "launch --gpu H100 --count 8 --provider aws --yes";
    let output = home.with_credentials(&format!("{launch} --json"));
    assert_eq!(output.status.code(), Some(5), "{}", both(&output));
    let error = document(&output)["error"].clone();
    assert_eq!((&error["class"], &error["provider"]), (&Value::from("transient"), &Value::from("aws")), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("not reached") && message.contains("refused"), "{message}");
    let output = home.with_credentials(launch);
    assert_eq!(output.status.code(), Some(5), "{}", both(&output));
    let words = stderr(&output);
    let seconds = words.split(' ').zip(words.split(' ').skip(1)).filter(|(_, unit)| unit.trim_matches(',') == "s");
    assert!(seconds.clone().all(|(n, _)| n.len() <= 3), "ages are in no raw seconds: {words}");
    assert_eq!(document(&home.with_credentials("jobs --all --json")), serde_json::json!([]));
}

#[test]
fn c9_offers_can_be_held_to_a_law() {
    let home = Home::new();
    for (law, allowed) in [("EU", &["EU"][..]), ("eea", &["EU", "NO", "IS", "LI"]), ("UK", &["GB"])] {
        let offers = home.json(&format!("--demo offers --gpu H100 --jurisdiction {law}"), 0);
        let offers = offers.as_array().expect("an array");
        assert!(!offers.is_empty(), "{law}");
        for offer in offers {
            assert!(allowed.contains(&offer["jurisdiction"].as_str().unwrap_or("unknown")), "{law}: {offer}");
        }
    }
}

#[test]
fn a_price_of_nothing_in_a_file_is_refused_with_its_place() {
    let home = Home::new();
    let row = r#"[{"provider":"aws","region":"us-east-1","instance_type":"p5.48xlarge","accelerator":"H100","accelerators":8,"purchase":"spot","usd_per_hour":0}]"#;
    let file = home.write("offers.json", row);
    let output = home.run(&format!("place --offers {} --gpu H100", file.display()));
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    assert!(both(&output).contains("row 1: usd_per_hour: 0 is no price"), "{}", both(&output));
}

/// A server on loopback that answers each path with what is given, and everything else with 404, until it is dropped.
#[cfg(feature = "update")]
fn serve(pages: Vec<(&'static str, &'static str, String)>) -> String {
    use std::io::{BufRead as _, BufReader, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut first = String::new();
            let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
            let _ = reader.read_line(&mut first);
            let mut line = String::from("x");
            while !line.trim().is_empty() {
                line.clear();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    break;
                }
            }
            let path = first.split(' ').nth(1).unwrap_or_default();
            let page = pages.iter().find(|(p, _, _)| *p == path);
            let (status, body) = page.map_or(("404 Not Found", ""), |(_, status, body)| (status, body.as_str()));
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    url
}

#[cfg(feature = "update")]
const LAMBDA: &str = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n\
                      gpu_8x_h100_sxm5,H100,8,208,1800,PRICE,us-south-1,,\n";

#[cfg(feature = "update")]
#[test]
fn fetched_tables_stand_before_the_bundled_ones() {
    let home = Home::new();
    let url = serve(vec![("/lambda/vms.csv", "200 OK", LAMBDA.replace("PRICE", "17.5"))]);
    home.write("config.toml", &format!("[catalogue]\nurl = \"{url}\"\n"));
    let rows = |home: &Home| {
        let all = home.json("catalogue show --provider lambda", 0);
        all.as_array().expect("rows").iter().map(|r| r["on_demand_usd_per_hour"].clone()).collect::<Vec<Value>>()
    };
    let before = rows(&home).len();
    assert!(before > 1);
    let told = home.json("catalogue update", 0);
    assert_eq!(told["kept"], 1, "{told}");
    assert_eq!(rows(&home), [serde_json::json!(17.5)]);
    assert!(both(&home.run("catalogue show --provider lambda")).contains(&format!("{url}/lambda/vms.csv as served")));
    // The others are as bundled.
    assert!(home.json("catalogue show --provider aws", 0).as_array().expect("rows").len() > 100);
    let left: Vec<_> = std::fs::read_dir(home.path()).expect("the home").flatten().map(|e| e.path()).collect();
    assert!(!left.iter().any(|p| p.to_string_lossy().contains("fetched-")), "{left:?}");
}

#[cfg(feature = "update")]
#[test]
fn what_cannot_be_fetched_or_read_changes_nothing() {
    let home = Home::new();
    let before = home.json("catalogue show --provider lambda", 0);
    let good = LAMBDA.replace("PRICE", "17.5");
    for (pages, code, words) in [
        (vec![("/lambda/vms.csv", "500 Oops", String::new())], 5, "500"),
        (vec![("/lambda/vms.csv", "302 Found\r\nlocation: http://127.0.0.1:9/", String::new())], 5, "302"),
        (vec![("/lambda/vms.csv", "200 OK", "<html>a login page</html>".to_owned())], 5, "not a price table"),
        (vec![("/lambda/vms.csv", "200 OK", LAMBDA.replace("PRICE", "-3"))], 5, "line 2: Price -3"),
        (vec![("/lambda/vms.csv", "200 OK", good.clone()), ("/aws/vms.csv", "503 Busy", String::new())], 5, "503"),
        (vec![], 5, "no table was found"),
    ] {
        let url = serve(pages);
        home.write("config.toml", &format!("[catalogue]\nurl = \"{url}\"\n"));
        let output = home.run("catalogue update");
        assert_eq!(output.status.code(), Some(code), "{}", both(&output));
        assert!(both(&output).contains(words), "'{words}' in {}", both(&output));
        assert_eq!(home.json("catalogue show --provider lambda", 0), before);
    }
    home.write("config.toml", "[catalogue]\nurl = \"http://127.0.0.1:9\"\n");
    let output = home.run("catalogue update --provider lambda");
    assert_eq!(output.status.code(), Some(5), "{}", both(&output));
    home.write("config.toml", "[catalogue]\nurl = \"http://10.0.0.1/x\"\n");
    assert_eq!(home.run("catalogue update").status.code(), Some(2), "in the clear only to this machine");
}

#[test]
fn the_demo_has_nothing_to_probe() {
    let home = Home::new();
    assert_eq!(home.demo("latency --probe").status.code(), Some(2));
    assert_eq!(home.run("latency --probe --from aws/us-east-1").status.code(), Some(2));
    // Nobody is connected.
    assert_eq!(home.run("latency --probe").status.code(), Some(5));
}

#[cfg(feature = "aws")]
#[test]
fn a_probe_measures_and_says_so() {
    let home = Home::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || listener.incoming().for_each(drop));
    home.write("config.toml", &format!("[providers.aws]\nendpoint_url = \"http://{address}\"\n"));
    let output = home.with_credentials("latency --probe --to aws/us-east-1 --json");
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    let found = document(&output);
    let one = &found[0];
    assert_eq!(
        (&one["to"], &one["source"], &one["samples"]),
        (&"aws/us-east-1".into(), &"measured".into(), &20.into())
    );
    assert!(one["p50_ms"].as_f64().is_some_and(|ms| ms > 0.0 && ms < 1_000.0), "{one}");
    assert_eq!(one["loss_percent"], 0.0);
    assert!(one["from"].as_str().is_some_and(|from| from.starts_with("here/")));
    home.write("config.toml", "[providers.aws]\nendpoint_url = \"http://127.0.0.1:9\"\n");
    let output = home.with_credentials("latency --probe --to aws/us-east-1 --json");
    assert_eq!((output.status.code(), document(&output)), (Some(5), serde_json::json!([])), "{}", both(&output));
    assert!(stderr(&output).contains("was not reached"), "{}", both(&output));
}
