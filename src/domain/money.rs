//! Money as an integer count of micro-USD. An amount, a rate per instance-hour and a rate per GPU-hour are three
//! types: mixing them up once billed a user eight times the price shown.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::accelerator::AcceleratorCount;

const MICROS: i64 = 1_000_000;

/// Why a text or number is not an amount of money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not a decimal number of USD.
    #[error("'{0}' is not an amount in USD, such as 3.29")]
    NotANumber(String),
    /// Larger than nine trillion USD, infinite, or not a number.
    #[error("the amount is out of range")]
    OutOfRange,
}

/// Micro-USD from a decimal text, exactly; digits after the sixth decimal are rounded half away from zero.
fn micros_from_text(text: &str) -> Result<i64, MoneyError> {
    let trimmed = text.trim();
    let bad = || MoneyError::NotANumber(trimmed.chars().take(40).collect());
    let (negative, digits) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, trimmed.strip_prefix('$').unwrap_or(trimmed)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty())
        || !whole.bytes().all(|b| b.is_ascii_digit())
        || !fraction.bytes().all(|b| b.is_ascii_digit())
    {
        return Err(bad());
    }
    // Only digits are left, so that all that can go wrong is their number.
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok().ok_or(MoneyError::OutOfRange)? };
    let mut micros: i64 = 0;
    for place in 0..6 {
        micros = micros * 10 + fraction.as_bytes().get(place).map_or(0, |b| i64::from(b - b'0'));
    }
    if fraction.as_bytes().get(6).is_some_and(|b| *b >= b'5') {
        micros += 1;
    }
    let total = whole.checked_mul(MICROS).and_then(|w| w.checked_add(micros)).ok_or(MoneyError::OutOfRange)?;
    Ok(if negative { -total } else { total })
}

/// Micro-USD from a float, rounded; refuses what is not finite or does not fit.
fn micros_from_f64(usd: f64) -> Result<i64, MoneyError> {
    let micros = (usd * MICROS as f64).round();
    // 2^63 micro-USD; beyond it a cast would saturate silently.
    if !micros.is_finite() || micros.abs() >= 9.2e18 {
        return Err(MoneyError::OutOfRange);
    }
    Ok(micros as i64)
}

macro_rules! money_type {
    ($(#[$doc:meta])* $name:ident, $suffix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(i64);

        impl $name {
            /// Nothing at all.
            pub const ZERO: Self = Self(0);
            /// From an integer count of micro-USD.
            pub const fn from_micros(micros: i64) -> Self { Self(micros) }
            /// The integer count of micro-USD.
            pub const fn micros(self) -> i64 { self.0 }
            /// From a decimal text in USD, exactly to the sixth decimal.
            pub fn parse_usd(text: &str) -> Result<Self, MoneyError> { micros_from_text(text).map(Self) }
            /// From a number of USD, rounded to a micro-USD.
            pub fn from_usd(usd: f64) -> Result<Self, MoneyError> { micros_from_f64(usd).map(Self) }
            /// As a number of USD, for JSON, statistics and solvers.
            pub fn to_usd(self) -> f64 { self.0 as f64 / MICROS as f64 }
            /// Times a whole number, saturating.
            #[must_use]
            pub const fn times(self, n: u32) -> Self { Self(self.0.saturating_mul(n as i64)) }
            /// Times a factor, rounded; saturates instead of wrapping, and a factor that is not a number gives zero.
            #[must_use]
            pub fn scaled(self, factor: f64) -> Self { Self((self.0 as f64 * factor).round() as i64) }
        }
        impl Add for $name { type Output = Self; fn add(self, other: Self) -> Self { Self(self.0.saturating_add(other.0)) } }
        impl Sub for $name { type Output = Self; fn sub(self, other: Self) -> Self { Self(self.0.saturating_sub(other.0)) } }
        impl Neg for $name { type Output = Self; fn neg(self) -> Self { Self(self.0.saturating_neg()) } }
        impl AddAssign for $name { fn add_assign(&mut self, other: Self) { *self = *self + other; } }
        impl Sum for $name { fn sum<I: Iterator<Item = Self>>(iter: I) -> Self { iter.fold(Self::ZERO, Add::add) } }
        impl fmt::Display for $name {
            /// `$1,234.56/h`; the precision of the format (`{:.4}`) sets the decimals, two by default.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad_integral(true, "", &format!("{}{}", dollars(self.0, f.precision().unwrap_or(2)), $suffix))
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> { s.serialize_f64(self.to_usd()) }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                Self::from_usd(f64::deserialize(d)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// `-$1,234.56` from micro-USD with so many decimals (at most six).
fn dollars(micros: i64, decimals: usize) -> String {
    let decimals = decimals.min(6);
    let unit = 10_u64.pow(6 - decimals as u32);
    let rounded = (micros.unsigned_abs() + unit / 2) / unit;
    let scale = 10_u64.pow(decimals as u32);
    let whole = (rounded / scale).to_string();
    let mut grouped = String::with_capacity(whole.len() + 8);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if micros < 0 && rounded > 0 { "-" } else { "" };
    if decimals == 0 { format!("{sign}${grouped}") } else { format!("{sign}${grouped}.{:0decimals$}", rounded % scale) }
}

money_type!(
    /// An amount of money.
    Money, ""
);
money_type!(
    /// What one instance (or a whole allocation) costs an hour.
    HourlyRate, "/h"
);
money_type!(
    /// What one GPU costs an hour: an instance's rate divided by its GPUs.
    GpuHourlyRate, "/GPU-h"
);

impl HourlyRate {
    /// The rate of one GPU of an instance with so many; `None` where the instance has none.
    pub fn per_gpu(self, count: AcceleratorCount) -> Option<GpuHourlyRate> {
        let parts = i64::from(count.ten_thousandths());
        if parts == 0 {
            return None;
        }
        let micros = (i128::from(self.0) * 10_000 + i128::from(parts) / 2) / i128::from(parts);
        i64::try_from(micros).ok().map(GpuHourlyRate)
    }

    /// What so much time costs at this rate; time that runs backwards costs nothing.
    pub fn for_duration(self, duration: chrono::Duration) -> Money {
        let millis = i128::from(duration.num_milliseconds().max(0));
        let micros = (i128::from(self.0) * millis + 1_800_000) / 3_600_000;
        Money(i64::try_from(micros).unwrap_or(i64::MAX))
    }

    /// What so many hours cost at this rate.
    pub fn for_hours(self, hours: f64) -> Money {
        Money((self.0 as f64 * hours.max(0.0)).round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_exactly_and_rounds_the_seventh_decimal() {
        assert_eq!(Money::parse_usd("4.049590926").map(Money::micros), Ok(4_049_591));
        assert_eq!(Money::parse_usd("8").map(Money::micros), Ok(8_000_000));
        assert_eq!(Money::parse_usd(".5").map(Money::micros), Ok(500_000));
        assert_eq!(Money::parse_usd("-1.5").map(Money::micros), Ok(-1_500_000));
        for bad in ["", "abc", "1e3", "NaN", "1.2.3", "--1", "."] {
            assert!(Money::parse_usd(bad).is_err(), "{bad}");
        }
        assert_eq!(Money::parse_usd("99999999999999999999"), Err(MoneyError::OutOfRange));
        assert_eq!(Money::from_usd(f64::INFINITY), Err(MoneyError::OutOfRange));
    }

    #[test]
    fn shows_thousands_and_decimals() {
        assert_eq!(Money::from_micros(1_234_567_890).to_string(), "$1,234.57");
        assert_eq!(format!("{:.4}", GpuHourlyRate::from_micros(1_290_000)), "$1.2900/GPU-h");
        assert_eq!(Money::from_micros(-1).to_string(), "$0.00");
        assert_eq!(format!("{:.0}", Money::from_micros(999_500_000)), "$1,000");
    }

    #[test]
    fn b1_a_rate_per_gpu_is_not_a_rate_per_instance() {
        let instance = HourlyRate::from_micros(1_280_000);
        let eight = AcceleratorCount::whole(8);
        assert_eq!(instance.per_gpu(eight), Some(GpuHourlyRate::from_micros(160_000)));
        let sixth = AcceleratorCount::from_ten_thousandths(1_667);
        assert_eq!(HourlyRate::from_micros(454_000).per_gpu(sixth).map(GpuHourlyRate::micros), Some(2_723_455));
        assert_eq!(instance.per_gpu(AcceleratorCount::whole(0)), None);
    }

    #[test]
    fn f1_time_that_runs_backwards_costs_nothing() {
        assert_eq!(HourlyRate::from_micros(3_600_000).for_duration(chrono::Duration::seconds(-5)), Money::ZERO);
        assert_eq!(HourlyRate::from_micros(3_600_000).for_duration(chrono::Duration::seconds(10)).micros(), 10_000);
    }
}
