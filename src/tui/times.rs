//! In whose time moments are shown. The zone is always said; files and JSON are always UTC.

use chrono::{DateTime, FixedOffset, Offset as _, Utc};

use super::table::age;
use crate::config::settings::TimeDisplay;

/// How far the operator's clock is from UTC at a moment.
pub type Zone = fn(DateTime<Utc>) -> FixedOffset;

/// UTC.
pub fn utc(_: DateTime<Utc>) -> FixedOffset {
    Utc.fix()
}

/// In whose time moments are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) display: TimeDisplay,
    pub(crate) zone: Zone,
}

impl Times {
    /// The next way, round and round.
    pub(crate) fn next(&mut self) {
        self.display = match self.display {
            TimeDisplay::Utc => TimeDisplay::Local,
            TimeDisplay::Local => TimeDisplay::Relative,
            TimeDisplay::Relative => TimeDisplay::Utc,
        };
    }

    /// In words, for a notice.
    pub(crate) fn told(self) -> &'static str {
        match self.display {
            TimeDisplay::Utc => "times in UTC",
            TimeDisplay::Local => "times in the local zone",
            TimeDisplay::Relative => "times as ages",
        }
    }

    fn zoned(self, at: DateTime<Utc>) -> DateTime<FixedOffset> {
        match self.display {
            TimeDisplay::Local => at.with_timezone(&(self.zone)(at)),
            TimeDisplay::Utc | TimeDisplay::Relative => at.fixed_offset(),
        }
    }

    /// With its zone: `Z` for UTC, else as `+05:30`.
    fn format(self, at: DateTime<Utc>, format: &str) -> String {
        let zoned = self.zoned(at);
        let zone = if zoned.offset().local_minus_utc() == 0 { "Z".to_owned() } else { zoned.format("%:z").to_string() };
        format!("{}{zone}", zoned.format(format))
    }

    /// Now, as a clock shows it.
    pub(crate) fn clock(self, now: DateTime<Utc>, day: bool) -> String {
        self.format(now, if day { "%Y-%m-%d %H:%M:%S" } else { "%H:%M:%S" })
    }

    /// A moment in a list: the day too where it is not today.
    pub(crate) fn short(self, now: DateTime<Utc>, at: DateTime<Utc>) -> String {
        if self.display == TimeDisplay::Relative {
            format!("{} ago", age(now, at))
        } else if self.zoned(at).date_naive() == self.zoned(now).date_naive() {
            self.format(at, "%H:%M:%S")
        } else {
            self.format(at, "%m-%d %H:%M")
        }
    }

    /// A moment by itself, in full, with its age.
    pub(crate) fn full(self, now: DateTime<Utc>, at: DateTime<Utc>) -> String {
        format!("{} ({} ago)", self.format(at, "%Y-%m-%dT%H:%M:%S"), age(now, at))
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    fn india(_: DateTime<Utc>) -> FixedOffset {
        FixedOffset::east_opt(19_800).expect("an offset")
    }

    #[test]
    fn op16_a_moment_always_says_its_zone_and_has_no_fractions() {
        let now = Utc.with_ymd_and_hms(2026, 11, 30, 20, 0, 0).unwrap();
        let at = now - chrono::TimeDelta::milliseconds(90_500);
        let mut times = Times { display: TimeDisplay::Utc, zone: india };
        assert_eq!(times.clock(now, true), "2026-11-30 20:00:00Z");
        assert_eq!(times.short(now, at), "19:58:29Z");
        assert_eq!(times.full(now, at), "2026-11-30T19:58:29Z (1m ago)");
        times.next();
        assert_eq!(times.clock(now, true), "2026-12-01 01:30:00+05:30");
        assert_eq!(times.short(now, at), "01:28:29+05:30");
        // Another day there, though the same in UTC.
        assert_eq!(times.short(now, now - chrono::TimeDelta::hours(2)), "11-30 23:30+05:30");
        times.next();
        assert_eq!(times.short(now, at), "1m ago");
        assert_eq!(times.clock(now, false), "20:00:00Z");
        times.next();
        assert_eq!(times.display, TimeDisplay::Utc);
    }
}
