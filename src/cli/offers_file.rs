//! `--offers FILE`: a market of one's own, in the shape of `offers --json` plus `capacity`. Errors name row and field.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::failure::{Failure, Outcome};
use crate::catalogue::{accelerators, instance_types, regions};
use crate::config::limits::{OFFERS_FILE_BYTES, PROBLEMS_TOLD};
use crate::config::reader::{nearest_word, parse_time};
use crate::domain::{
    Accelerator, AcceleratorCount, Availability, Evidence, HourlyRate, Offer, OfferKey, Purchase, Shape,
};
use crate::market::Snapshot;

/// Every field of a row.
const FIELDS: [&str; 20] = [
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
    "capacity",
    "interruptions_per_day",
    "price_is_live",
];

/// Read a market from a file.
pub fn load(path: &Path, now: DateTime<Utc>) -> Outcome<Snapshot> {
    let name = path.display();
    let size = fs::metadata(path).map_err(|e| unreadable(path, &e))?.len();
    if size > OFFERS_FILE_BYTES {
        return Err(invalid(format!("{name}: larger than {} MiB", OFFERS_FILE_BYTES >> 20)));
    }
    let mut text = String::new();
    let mut file = fs::File::open(path).map_err(|e| unreadable(path, &e))?.take(OFFERS_FILE_BYTES + 1);
    file.read_to_string(&mut text).map_err(|e| unreadable(path, &e))?;
    if text.len() as u64 > OFFERS_FILE_BYTES {
        return Err(invalid(format!("{name}: larger than {} MiB", OFFERS_FILE_BYTES >> 20)));
    }
    parse(&text, now).map_err(|problems| {
        let told: Vec<String> = problems.iter().take(PROBLEMS_TOLD).map(|p| format!("{name}: {p}")).collect();
        let more = problems.len().saturating_sub(PROBLEMS_TOLD);
        let rest = if more > 0 { format!("\nand {more} more") } else { String::new() };
        invalid(format!("{}{rest}", told.join("\n")))
    })
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    invalid(format!("{}: could not be read: {error}", path.display()))
}

fn invalid(message: String) -> Failure {
    Failure::new(super::failure::Exit::Usage, "invalid", message)
        .hint("The file has the shape of `gpudeck offers --json`, plus `capacity` in instances.")
}

/// A market from JSON; every finding at once.
pub fn parse(text: &str, now: DateTime<Utc>) -> Result<Snapshot, Vec<String>> {
    let rows: Vec<Value> = serde_json::from_str(text).map_err(|e| vec![format!("not a JSON array of offers: {e}")])?;
    let mut problems = Vec::new();
    let mut offers: Vec<Offer> = Vec::with_capacity(rows.len());
    for (i, row) in rows.iter().enumerate() {
        let Value::Object(fields) = row else {
            problems.push(format!("row {}: not an object", i + 1));
            continue;
        };
        let mut reader = Row { number: i + 1, fields, problems: &mut problems };
        let offer = reader.offer(now);
        offers.extend(offer);
    }
    let mut keys: Vec<(&OfferKey, usize)> = offers.iter().zip(1..).map(|(o, i)| (&o.key, i)).collect();
    keys.sort();
    if problems.is_empty() {
        for pair in keys.windows(2) {
            if let [(a, first), (b, second)] = pair
                && a == b
            {
                problems.push(format!("row {second}: the same offer as row {first} ({a})"));
            }
        }
    }
    if problems.is_empty() { Ok(Snapshot::from_offers(now, offers)) } else { Err(problems) }
}

struct Row<'r> {
    number: usize,
    fields: &'r Map<String, Value>,
    problems: &'r mut Vec<String>,
}

impl Row<'_> {
    fn complain(&mut self, field: &str, what: impl std::fmt::Display) {
        self.problems.push(format!("row {}: {field}: {what}", self.number));
    }

    fn get(&self, field: &str) -> Option<&Value> {
        self.fields.get(field).filter(|v| !v.is_null())
    }

    fn offer(&mut self, now: DateTime<Utc>) -> Option<Offer> {
        let unknown: Vec<String> = self.fields.keys().filter(|k| !FIELDS.contains(&k.as_str())).cloned().collect();
        for field in unknown {
            // Fields may be added to the shape later, and a newer file must stay readable; one that is nearly a known
            // field is a typing error.
            if let Some(near) =
                nearest_word(&field, FIELDS).filter(|near| strsim::damerau_levenshtein(near, &field) <= 2)
            {
                self.complain(&field, format!("unknown field; did you mean '{near}'?"));
            }
        }
        let before = self.problems.len();
        let provider = self.name("provider");
        let region = self.name("region");
        let zone = self.text("zone");
        let instance_type = self.name("instance_type");
        let raw = self.name("accelerator");
        let count = self.count();
        let gpu_memory_gib = self.amount("gpu_memory_gib");
        let accelerator = Self::accelerator(raw.as_deref().unwrap_or_default(), gpu_memory_gib);
        let vcpus = self.whole("vcpus");
        let memory_gib = self.amount("memory_gib");
        let purchase = self.purchase();
        let price = self.price(count);
        let availability = self.word(
            "availability",
            &[
                ("available", Availability::Available),
                ("limited", Availability::Limited),
                ("none", Availability::None),
                ("unknown", Availability::Unknown),
            ],
            Availability::Unknown,
        );
        let evidence = self.word(
            "evidence",
            &[
                ("api", Evidence::Api),
                ("spot_score", Evidence::SpotScore),
                ("quota", Evidence::Quota),
                ("attempt", Evidence::Attempt),
                ("catalogue", Evidence::Catalogue),
                ("simulated", Evidence::Simulated),
            ],
            Evidence::Catalogue,
        );
        let observed_at = self.time("observed_at", now);
        let stale = self.switch("stale", false);
        let price_is_live = self.switch("price_is_live", true);
        let capacity = self.whole("capacity");
        let interruptions_per_day = self.amount("interruptions_per_day");
        let jurisdiction = self.text("jurisdiction");
        if self.problems.len() > before {
            return None;
        }
        let (provider, region, instance_type) = (provider?, region?, instance_type?);
        let jurisdiction = match (self.fields.contains_key("jurisdiction"), jurisdiction) {
            (true, jurisdiction) => jurisdiction,
            // A file that does not know the field leaves the question to the table of regions.
            (false, _) => regions::jurisdiction(&provider, &region).map(str::to_owned),
        };
        Some(Offer {
            shape: Arc::new(Shape {
                interconnect: instance_types::interconnect(&provider, &instance_type),
                instance_type: instance_type.as_str().into(),
                gpu_memory_gib: gpu_memory_gib.or_else(|| accelerators::memory_gib(&accelerator)),
                accelerator,
                accelerators: count?,
                vcpus,
                memory_gib,
            }),
            key: OfferKey {
                provider: provider.into(),
                region: region.into(),
                zone: zone.map(Into::into),
                instance_type: instance_type.into(),
                purchase: purchase?,
            },
            price,
            price_is_live,
            availability,
            evidence,
            observed_at,
            stale,
            capacity,
            quota: None,
            interruptions_per_day,
            jurisdiction: jurisdiction.map(Into::into),
        })
    }

    fn text(&mut self, field: &str) -> Option<String> {
        let value = self.get(field)?;
        if let Value::String(text) = value {
            return Some(text.clone());
        }
        let kind = kind(value);
        self.complain(field, format!("expected a text, found {kind}"));
        None
    }

    /// A text that must be there.
    fn name(&mut self, field: &str) -> Option<String> {
        if self.get(field).is_none() {
            self.complain(field, "missing");
            return None;
        }
        let text = self.text(field)?;
        if text.is_empty() {
            self.complain(field, "empty");
        }
        Some(text)
    }

    /// A number of at least 0.
    fn amount(&mut self, field: &str) -> Option<f64> {
        let value = self.get(field)?;
        let kind = kind(value);
        match value.as_f64() {
            Some(n) if n.is_finite() && n >= 0.0 => Some(n),
            Some(n) => {
                self.complain(field, format!("{n} is negative"));
                None
            }
            None => {
                self.complain(field, format!("expected a number, found {kind}"));
                None
            }
        }
    }

    fn whole(&mut self, field: &str) -> Option<u32> {
        let n = self.amount(field)?;
        if n.fract() != 0.0 || n > f64::from(u32::MAX) {
            self.complain(field, format!("{n} is not a whole number of a sensible size"));
            return None;
        }
        Some(n as u32)
    }

    fn switch(&mut self, field: &str, default: bool) -> bool {
        match self.get(field) {
            None => default,
            Some(Value::Bool(on)) => *on,
            Some(other) => {
                let kind = kind(other);
                self.complain(field, format!("expected true or false, found {kind}"));
                default
            }
        }
    }

    fn time(&mut self, field: &str, default: DateTime<Utc>) -> DateTime<Utc> {
        let Some(text) = self.text(field) else { return default };
        parse_time(&text).unwrap_or_else(|message| {
            self.complain(field, message);
            default
        })
    }

    fn word<T: Copy>(&mut self, field: &str, words: &[(&str, T)], default: T) -> T {
        let Some(text) = self.text(field) else { return default };
        words.iter().find(|(word, _)| *word == text).map_or_else(
            || {
                let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                self.complain(field, format!("'{text}' is none of {}", all.join(", ")));
                default
            },
            |(_, value)| *value,
        )
    }

    fn purchase(&mut self) -> Option<Purchase> {
        let text = self.name("purchase")?;
        let purchase = Purchase::parse(&text);
        if purchase.is_none() {
            self.complain("purchase", format!("'{text}' is none of on_demand, spot, reserved"));
        }
        purchase
    }

    fn count(&mut self) -> Option<AcceleratorCount> {
        if self.get("accelerators").is_none() {
            self.complain("accelerators", "missing");
            return None;
        }
        let n = self.amount("accelerators")?;
        let count = AcceleratorCount::from_f64(n);
        if count.is_none() {
            self.complain("accelerators", format!("{n} is more than an instance can have"));
        }
        count
    }

    /// By the table's name; a chip that the table does not know keeps its own.
    fn accelerator(raw: &str, memory_gib: Option<f64>) -> Accelerator {
        // A family's name ("H100") is not the chip: the memory may tell which.
        let known = accelerators::all().iter().find(|e| e.accelerator.as_str() == raw && e.memory_gib.is_some());
        match known {
            Some(entry) => entry.accelerator.clone(),
            None => match raw.strip_prefix("unknown:") {
                Some(rest) => Accelerator::unknown(rest),
                None => accelerators::canonical_with_memory(raw, memory_gib),
            },
        }
    }

    /// Of the instance; where only the price of a GPU is there, times their number. Both must agree.
    fn price(&mut self, count: Option<AcceleratorCount>) -> Option<HourlyRate> {
        let whole = self.usd("usd_per_hour");
        let each = self.usd("usd_per_gpu_hour");
        let gpus = count.map(AcceleratorCount::to_f64)?;
        match (whole, each) {
            (Some(whole), Some(each)) => {
                // Both are rounded to a millionth; what is further apart is the price of something else.
                if (whole.to_usd() - each.to_usd() * gpus).abs() > 0.01_f64.max(whole.to_usd() * 1e-3) {
                    self.complain(
                        "usd_per_gpu_hour",
                        format!("{} times {gpus} is not usd_per_hour, {}", each.to_usd(), whole.to_usd()),
                    );
                }
                Some(whole)
            }
            (Some(whole), None) => Some(whole),
            (None, Some(each)) => Some(each.scaled(gpus)),
            (None, None) => None,
        }
    }

    fn usd(&mut self, field: &str) -> Option<HourlyRate> {
        let n = self.amount(field)?;
        if n == 0.0 {
            self.complain(field, "0 is no price; leave out what is not known");
            return None;
        }
        let rate = HourlyRate::from_usd(n).ok();
        if rate.is_none() {
            self.complain(field, format!("{n} is out of range"));
        }
        rate
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;
    use crate::cli::shapes::OfferShape;

    pub(crate) fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_796_083_200, 0).expect("a time")
    }

    /// An offer of 8 H100 with a price of 80 USD an hour.
    pub(crate) fn offer(provider: &str, region: &str, instance_type: &str, purchase: Purchase) -> Offer {
        Offer {
            key: OfferKey {
                provider: provider.into(),
                region: region.into(),
                zone: None,
                instance_type: instance_type.into(),
                purchase,
            },
            shape: Arc::new(Shape {
                instance_type: instance_type.into(),
                accelerator: accelerators::canonical("H100-80GB-SXM"),
                accelerators: AcceleratorCount::whole(8),
                gpu_memory_gib: Some(80.0),
                vcpus: Some(192),
                memory_gib: Some(2048.0),
                interconnect: instance_types::interconnect(provider, instance_type),
            }),
            price: Some(HourlyRate::from_micros(80_000_000)),
            price_is_live: true,
            availability: Availability::Available,
            evidence: Evidence::Api,
            observed_at: now(),
            stale: false,
            capacity: Some(3),
            quota: None,
            interruptions_per_day: None,
            jurisdiction: Some("US".into()),
        }
    }

    const ROW: &str = r#"{"provider":"aws","region":"us-east-1","zone":"use1-az4","instance_type":"p5.48xlarge",
        "accelerator":"H100","accelerators":8,"gpu_memory_gib":80,"vcpus":192,"memory_gib":2048,"purchase":"spot",
        "usd_per_hour":19.76,"usd_per_gpu_hour":2.47,"availability":"available","evidence":"api",
        "observed_at":"2026-11-30T23:59:00Z","stale":false,"jurisdiction":"US","capacity":4}"#;

    #[test]
    fn a_row_is_read_in_full() {
        let snapshot = parse(&format!("[{ROW}]"), now()).expect("valid");
        let offer = snapshot.iter().next().expect("an offer");
        assert_eq!(offer.key.to_string(), "aws/us-east-1/use1-az4 p5.48xlarge spot");
        assert_eq!(offer.price, Some(HourlyRate::from_micros(19_760_000)));
        assert_eq!(offer.capacity, Some(4));
        assert!(offer.shape.accelerator.is_known(), "{}", offer.shape.accelerator);
    }

    #[test]
    fn what_offers_prints_reads_back_the_same() {
        let offers = [
            offer("aws", "us-east-1", "p5.48xlarge", Purchase::Spot),
            offer("gcp", "us-central1", "a3", Purchase::OnDemand),
        ];
        let shapes: Vec<OfferShape<'_>> = offers.iter().map(OfferShape::from).collect();
        let text = serde_json::to_string(&shapes).expect("JSON");
        let back: Vec<Offer> = parse(&text, now()).expect("valid").iter().map(|o| (**o).clone()).collect();
        assert_eq!(back, offers);
    }

    /// What replaces a part of the sound row, and a part of the message it must get.
    #[rstest::rstest]
    #[case(r#""provider":"aws","#, "", "row 1: provider: missing")]
    #[case(r#""accelerators":8"#, r#""accelerators":"8""#, "row 1: accelerators: expected a number, found a text")]
    #[case(r#""accelerators":8"#, r#""accelerators":-8"#, "negative")]
    #[case(r#""vcpus":192"#, r#""vcpus":1.5"#, "whole number")]
    #[case(r#""usd_per_gpu_hour":2.47"#, r#""usd_per_gpu_hour":19.76"#, "is not usd_per_hour")]
    #[case(r#""usd_per_hour":19.76"#, r#""usd_per_hour":1e300"#, "out of range")]
    #[case(r#""purchase":"spot""#, r#""purchase":"rent""#, "none of on_demand")]
    #[case(r#""availability":"available""#, r#""availability":"yes""#, "none of available")]
    #[case(r#""observed_at":"2026-11-30T23:59:00Z""#, r#""observed_at":"yesterday""#, "offset")]
    #[case(r#""capacity":4"#, r#""capcity":4"#, "did you mean 'capacity'")]
    #[case(r#""stale":false"#, r#""stale":"no""#, "true or false")]
    fn an_error_names_row_and_field(#[case] from: &str, #[case] to: &str, #[case] part: &str) {
        assert!(ROW.contains(from));
        let problems = parse(&format!("[{}]", ROW.replace(from, to)), now()).expect_err("refused");
        assert!(problems.iter().any(|p| p.contains(part)), "{problems:?}");
    }

    #[test]
    fn b1_a_price_of_a_gpu_alone_is_times_their_number_and_no_price_is_unknown() {
        let each = parse(&format!("[{}]", ROW.replace(r#""usd_per_hour":19.76,"#, "")), now()).expect("valid");
        assert_eq!(each.iter().next().and_then(|o| o.price), Some(HourlyRate::from_micros(19_760_000)));
        let none = ROW.replace(r#""usd_per_hour":19.76,"usd_per_gpu_hour":2.47"#, r#""usd_per_hour":null"#);
        let none = parse(&format!("[{none}]"), now()).expect("valid");
        assert_eq!(none.iter().next().and_then(|o| o.price), None);
    }

    #[test]
    fn the_same_offer_twice_is_told() {
        let problems = parse(&format!("[{ROW},{ROW}]"), now()).expect_err("refused");
        assert!(problems[0].contains("row 2: the same offer as row 1"), "{problems:?}");
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC*|\\[\\{(\"(provider|accelerators|usd_per_hour|capacity)\":(-?[0-9.e]{1,9}|\"x\"|null|\\[\\]),?)*\\}\\]") {
            let _ = parse(&text, now());
        }
    }
}
