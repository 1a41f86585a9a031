//! A round trip from the distance.
//!
//! The formula is a fit (least absolute deviations, in three steps) to the 2,856 published means against the great-circle
//! distance of the two regions: 2.5 ms, and 20.5 µs for each of the first 1,000 km, and 16.5 µs for each further one.
//! Light in fibre needs 10 µs a kilometre there and back; the rest is detours. Half of the published means lie within
//! 15 % of it and nine tenths within 49 %: Africa and South America are farther than they look. It is a guess, and
//! marked as one.

use crate::catalogue::regions::RegionFacts;

/// Mean radius of the earth.
const EARTH_KM: f64 = 6_371.0;

const BASE_MS: f64 = 2.5;
const NEAR_KM: f64 = 1_000.0;
const NEAR_MS_PER_KM: f64 = 0.020_5;
const FAR_MS_PER_KM: f64 = 0.016_5;

/// A place known no better than this makes an error of 13 ms: no guess is made from it.
const VAGUEST_KM: f64 = 800.0;

/// Great-circle distance in kilometres (haversine formula).
pub fn distance_km(a: &RegionFacts, b: &RegionFacts) -> f64 {
    let (south, north) = (a.latitude.to_radians(), b.latitude.to_radians());
    let half = |angle: f64| (angle / 2.0).sin().powi(2);
    let chord = half(north - south) + south.cos() * north.cos() * half((b.longitude - a.longitude).to_radians());
    2.0 * EARTH_KM * chord.clamp(0.0, 1.0).sqrt().asin()
}

/// The guessed round trip in ms; `None` where a place is known by its country only, and that is large.
pub fn round_trip_ms(a: &RegionFacts, b: &RegionFacts) -> Option<f64> {
    if a.radius_km > VAGUEST_KM || b.radius_km > VAGUEST_KM {
        return None;
    }
    let km = distance_km(a, b);
    Some(BASE_MS + km.min(NEAR_KM) * NEAR_MS_PER_KM + (km - NEAR_KM).max(0.0) * FAR_MS_PER_KM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::regions::facts;

    #[test]
    fn distances_are_those_of_an_atlas() {
        let virginia = facts("aws", "us-east-1").unwrap();
        let frankfurt = facts("aws", "eu-central-1").unwrap();
        let sydney = facts("gcp", "australia-southeast1").unwrap();
        assert!((distance_km(virginia, frankfurt) - 6_530.0).abs() < 50.0);
        assert!((distance_km(virginia, sydney) - 15_700.0).abs() < 100.0);
        assert!(distance_km(sydney, sydney) < 1e-6);
        assert!(round_trip_ms(virginia, facts("runpod", "US").unwrap()).is_none(), "somewhere in the United States");
    }
}
