//! Moments and ages for people. The zone is always said; an age is never negative.

use chrono::{DateTime, Local, SecondsFormat, Utc};

use crate::config::settings::TimeDisplay;

/// A moment in UTC, to the second.
pub fn utc(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A moment as people want it.
pub fn moment(at: DateTime<Utc>, now: DateTime<Utc>, display: TimeDisplay) -> String {
    match display {
        TimeDisplay::Utc => utc(at),
        TimeDisplay::Local => at.with_timezone(&Local).to_rfc3339_opts(SecondsFormat::Secs, false),
        TimeDisplay::Relative if at > now => format!("in {}", age(at, now)),
        TimeDisplay::Relative => format!("{} ago", age(now, at)),
    }
}

/// How long it is from `from` to `to`, in the largest unit that leaves at least two of it. Nothing where it is negative:
/// clocks of two machines differ.
pub fn age(to: DateTime<Utc>, from: DateTime<Utc>) -> String {
    let seconds = (to - from).num_seconds().max(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_an_age_is_never_negative_and_a_moment_always_says_its_zone() {
        let now = DateTime::from_timestamp(1_796_083_200, 0).expect("a time");
        let ahead = now + chrono::Duration::seconds(90);
        assert_eq!(age(now, ahead), "0 s");
        assert_eq!(moment(ahead, now, TimeDisplay::Relative), "in 90 s");
        assert_eq!(moment(now - chrono::Duration::hours(3), now, TimeDisplay::Relative), "3 h ago");
        assert_eq!(moment(now, now, TimeDisplay::Utc), "2026-12-01T00:00:00Z");
        let local = moment(now, now, TimeDisplay::Local);
        assert!(local.contains('+') || local.rsplit('-').next().is_some_and(|z| z.len() == 5), "{local}");
        // A leap day, and the days around it, count as any other.
        let leap = DateTime::parse_from_rfc3339("2028-03-01T00:00:00Z").expect("a time").with_timezone(&Utc);
        assert_eq!(age(leap, leap - chrono::Duration::days(3)), "3 d");
    }
}
