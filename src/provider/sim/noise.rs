//! Chance without state: every draw is a hash of the world's seed and of what it is drawn for, so that any moment of the
//! market can be computed by itself, in any order, by any process, with the same result.

/// The finaliser of `SplitMix64` (Steele, Lea and Flood 2014): each output bit depends on each input bit.
pub(super) const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A draw's seed from another seed and texts; 64-bit FNV-1a, written out because it must never change between versions.
pub(super) fn keyed(seed: u64, parts: &[&str]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64 ^ mix(seed);
    for part in parts {
        // 0xFF is in no UTF-8 text, so that ["ab","c"] and ["a","bc"] differ.
        for byte in part.bytes().chain([0xFF]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }
    mix(hash)
}

/// A draw's seed from another seed and a number.
pub(super) const fn numbered(seed: u64, n: i64) -> u64 {
    mix(seed ^ (n as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93))
}

/// Uniform in the open interval (0, 1).
pub(super) fn unit(hash: u64) -> f64 {
    ((hash >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}

/// Uniform between two numbers.
pub(super) fn between(hash: u64, low: f64, high: f64) -> f64 {
    low + (high - low) * unit(hash)
}

/// Smooth noise in -1..1: a hashed value at each multiple of the period, eased from one to the next. It reverts to zero
/// because each value is drawn anew.
pub(super) fn smooth(seed: u64, at_ms: i64, period_ms: i64) -> f64 {
    let cell = at_ms.div_euclid(period_ms);
    let f = at_ms.rem_euclid(period_ms) as f64 / period_ms as f64;
    let from = between(numbered(seed, cell), -1.0, 1.0);
    let to = between(numbered(seed, cell + 1), -1.0, 1.0);
    from + (to - from) * f * f * (3.0 - 2.0 * f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_uniform_and_differ_by_key() {
        let n = 20_000;
        let mean = (0..n).map(|i| unit(numbered(7, i))).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        assert_ne!(keyed(1, &["ab", "c"]), keyed(1, &["a", "bc"]));
        assert_ne!(keyed(1, &["a"]), keyed(2, &["a"]));
    }

    #[test]
    fn noise_is_continuous_and_bounded() {
        let mut last = smooth(3, -5_000_000, 60_000);
        for t in (-5_000_000..5_000_000).step_by(600) {
            let here = smooth(3, t, 60_000);
            assert!(here.abs() <= 1.0 && (here - last).abs() < 0.04, "at {t}: {last} → {here}");
            last = here;
        }
    }
}
