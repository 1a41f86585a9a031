//! The panes: what their rows are, what stands in their columns, how they are drawn.

pub(crate) mod capacity;
pub(crate) mod events;
pub(crate) mod heat;
pub(crate) mod jobs;
pub(crate) mod latency;
pub(crate) mod prices;

/// Which pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Pane {
    Capacity,
    Prices,
    Latency,
    Jobs,
    Events,
}

impl Pane {
    /// All, in the order of Tab.
    pub(crate) const ALL: [Self; 5] = [Self::Capacity, Self::Prices, Self::Latency, Self::Jobs, Self::Events];

    /// Its heading.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Capacity => "Capacity",
            Self::Prices => "Prices",
            Self::Latency => "Latency",
            Self::Jobs => "Jobs",
            Self::Events => "Events",
        }
    }
}
