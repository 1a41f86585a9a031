//! A region's zones. The letters (`us-east-1a`) are each account's own; the ids (`use1-az4`) are the same for all, so
//! only ids travel, and letters stay in here.

use crate::domain::{Availability, Zone as ZoneId};

/// One zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Zone {
    /// This account's name for it.
    pub(super) name: String,
    /// Its id, the same for every account.
    pub(super) id: ZoneId,
    /// What EC2 says of its stock as a whole, if anything: a zone can be constrained or out of service.
    pub(super) stock: Option<Availability>,
}

/// A region's zones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Zones(Vec<Zone>);

impl Zones {
    /// From its zones.
    pub(super) fn new(zones: impl IntoIterator<Item = Zone>) -> Self {
        let mut zones: Vec<Zone> = zones.into_iter().collect();
        zones.sort_by(|a, b| a.id.cmp(&b.id));
        Self(zones)
    }

    /// The id of the zone with this name.
    pub(super) fn id(&self, name: &str) -> Option<&ZoneId> {
        self.0.iter().find(|z| z.name == name).map(|z| &z.id)
    }

    /// The zone with this id.
    pub(super) fn with_id(&self, id: &str) -> Option<&Zone> {
        self.0.iter().find(|z| z.id == *id)
    }

    /// All ids, sorted, for messages.
    pub(super) fn ids(&self) -> String {
        self.0.iter().map(|z| z.id.as_str()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d5_letters_and_ids_of_an_account_are_told_apart() {
        let zone = |name: &str, id: &str| Zone { name: name.to_owned(), id: id.into(), stock: None };
        let zones = Zones::new([zone("us-east-1a", "use1-az6"), zone("us-east-1b", "use1-az1")]);
        assert_eq!(zones.id("us-east-1a").map(ZoneId::as_str), Some("use1-az6"));
        assert_eq!(zones.with_id("use1-az6").map(|z| z.name.as_str()), Some("us-east-1a"));
        assert_eq!(zones.id("use1-az6"), None);
        assert_eq!(zones.with_id("us-east-1a"), None);
        assert_eq!(zones.ids(), "use1-az1, use1-az6");
    }
}
