//! Where regions lie and under whose law the ground is. The table is `data/regions.csv`.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

const TABLE: &str = include_str!("../../data/regions.csv");

/// Members of the European Economic Area that are not in the European Union.
const EEA_ONLY: [&str; 3] = ["NO", "IS", "LI"];

/// What is known of a region's place.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionFacts {
    /// The nearest city, or the state or country where no more is known.
    pub city: &'static str,
    /// The country's ISO code.
    pub country: &'static str,
    /// Whose law the place lies under: `EU` for the Union's members, otherwise the country's ISO code. It is the law of
    /// the ground, not of the operator's seat.
    pub jurisdiction: &'static str,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// How far from there the machines may stand, in kilometres.
    pub radius_km: f64,
}

type Table = FxHashMap<&'static str, FxHashMap<&'static str, RegionFacts>>;

fn parse(text: &'static str) -> Result<Table, String> {
    let mut table = Table::default();
    for (number, line) in text.lines().enumerate().filter(|(_, l)| !l.is_empty() && !l.starts_with('#')).skip(1) {
        let at = |what: &str| format!("line {}: {what}: {line}", number + 1);
        let fields: Vec<&'static str> = line.split(',').collect();
        let [provider, region, city, country, jurisdiction, latitude, longitude, radius] = fields.as_slice() else {
            return Err(at("eight fields are needed"));
        };
        let degrees = |text: &str, most: f64| match text.parse::<f64>() {
            Ok(n) if n.abs() <= most => Ok(n),
            _ => Err(at("not a place on earth")),
        };
        let facts = RegionFacts {
            city,
            country,
            jurisdiction,
            latitude: degrees(latitude, 90.0)?,
            longitude: degrees(longitude, 180.0)?,
            radius_km: degrees(radius, 20_000.0)?,
        };
        if table.entry(provider).or_default().insert(region, facts).is_some() {
            return Err(at("the region stands twice"));
        }
    }
    Ok(table)
}

#[expect(clippy::panic, reason = "the table is part of the program, and a test reads it")]
fn table() -> &'static Table {
    static PARSED: OnceLock<Table> = OnceLock::new();
    PARSED.get_or_init(|| parse(TABLE).unwrap_or_else(|e| panic!("data/regions.csv: {e}")))
}

/// Where a region lies; `None` where it is not known.
pub fn facts(provider: &str, region: &str) -> Option<&'static RegionFacts> {
    table().get(provider)?.get(region)
}

/// Under whose law a region lies (`EU`, `US`, `GB`, …); `None` where it is not known, which a rule on residency must
/// take as "not there".
pub fn jurisdiction(provider: &str, region: &str) -> Option<&'static str> {
    facts(provider, region).map(|f| f.jurisdiction)
}

/// The laws that places lie under which satisfy a wish: `EEA` is the Union, Norway, Iceland and Liechtenstein. Empty
/// where no place does.
pub fn within(wanted: &str) -> Vec<String> {
    let mut all: Vec<&str> = all().into_iter().map(|(_, _, facts)| facts.jurisdiction).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().filter(|law| is_within(law, wanted)).map(str::to_owned).collect()
}

/// Whether a place under `jurisdiction` satisfies the wish for `wanted`: the same code, or `EEA` for the Union, Norway,
/// Iceland and Liechtenstein. `UK` is taken for `GB`. Case does not matter.
pub fn is_within(jurisdiction: &str, wanted: &str) -> bool {
    let wanted = if wanted.eq_ignore_ascii_case("UK") { "GB" } else { wanted };
    jurisdiction.eq_ignore_ascii_case(wanted)
        || (wanted.eq_ignore_ascii_case("EEA")
            && (jurisdiction.eq_ignore_ascii_case("EU")
                || EEA_ONLY.iter().any(|code| jurisdiction.eq_ignore_ascii_case(code))))
}

/// Every region in the table, by provider and region.
pub fn all() -> Vec<(&'static str, &'static str, &'static RegionFacts)> {
    let mut all: Vec<_> =
        table().iter().flat_map(|(p, regions)| regions.iter().map(move |(r, facts)| (*p, *r, facts))).collect();
    all.sort_by_key(|(p, r, _)| (*p, *r));
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::catalogue::Catalogue;

    #[test]
    fn the_table_is_sound() {
        parse(TABLE).unwrap();
        let eu = [
            "AT", "BE", "BG", "HR", "CY", "CZ", "DK", "EE", "FI", "FR", "DE", "GR", "HU", "IE", "IT", "LV", "LT", "LU",
            "MT", "NL", "PL", "PT", "RO", "SK", "SI", "ES", "SE",
        ];
        for (provider, region, facts) in all() {
            let law = if eu.contains(&facts.country) { "EU" } else { facts.country };
            assert_eq!(facts.jurisdiction, law, "{provider}/{region}");
            assert!(facts.country.len() == 2 && facts.radius_km > 0.0, "{provider}/{region}");
        }
        assert!(parse("h\naws,x,C,US,US,91,0,50").is_err());
    }

    #[test]
    fn every_region_of_the_catalogue_lies_somewhere_but_two() {
        let unknown: BTreeSet<String> = Catalogue::bundled()
            .rows()
            .iter()
            .filter(|r| facts(r.provider.as_str(), r.region.as_str()).is_none())
            .map(|r| format!("{}/{}", r.provider, r.region))
            .collect();
        // Hyperbolic does not say where its machines stand; of Lambda's region no public statement was at hand.
        assert_eq!(unknown.into_iter().collect::<Vec<_>>(), ["hyperbolic/default", "lambda/europe-south-1"]);
    }

    #[test]
    fn norway_is_in_the_area_and_not_in_the_union() {
        let norway = jurisdiction("azure", "norwayeast").unwrap();
        assert!(is_within(norway, "EEA") && is_within(norway, "no") && !is_within(norway, "EU"));
        assert!(is_within("EU", "EEA") && !is_within("EEA", "EU") && !is_within("CH", "EEA"));
        assert!(is_within("GB", "UK") && !is_within("GB", "EU"));
        assert_eq!(jurisdiction("verda", "FIN-01"), Some("EU"));
        assert_eq!(jurisdiction("aws", "nowhere-1"), None);
        assert_eq!(facts("gcp", "europe-west6").unwrap().city, "Zurich");
    }
}
