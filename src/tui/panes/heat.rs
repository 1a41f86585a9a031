//! Capacity as a map: GPU types down, regions across; in each cell the best availability and the cheapest price.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use ratatui::layout::Rect;

use super::capacity::{CapacityRow, availability_mark, figure, too_old};
use crate::domain::{Accelerator, Availability, GpuHourlyRate, Location, Offer};
use crate::tui::paint::Canvas;
use crate::tui::table::Listing;
use crate::tui::theme::Role;

/// One cell: one offer of a GPU type in a region, the cheapest of those that may be had, else of all. Mark and figure are
/// both of it: an offer that can be had beside another's price would be neither.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HeatCell {
    pub(crate) offer: Arc<Offer>,
    /// How dear it is among the known prices of this GPU: 0 is the cheapest fifth, 4 the dearest.
    pub(crate) heat: u8,
}

/// The map of what passes the filter.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeatMap {
    pub(crate) gpus: Vec<Accelerator>,
    /// Regions with most GPU types first.
    pub(crate) regions: Vec<Location>,
    pub(crate) cells: BTreeMap<(usize, usize), HeatCell>,
}

const HEAT: [Role; 5] = [Role::Heat1, Role::Heat2, Role::Heat3, Role::Heat4, Role::Heat5];
const CELL: u16 = 10;
const LABEL: u16 = 15;

/// Which offer stands for its cell: what may be had before what may not, then the cheapest, unpriced last.
fn before(offer: &Offer) -> (bool, bool, Option<GpuHourlyRate>, Availability) {
    let price = offer.price_per_gpu();
    (offer.availability == Availability::None, price.is_none(), price, offer.availability)
}

pub(crate) fn build(listing: &Listing<CapacityRow>) -> HeatMap {
    let mut found: BTreeMap<(&Accelerator, (&str, &str)), HeatCell> = BTreeMap::new();
    for row in listing.order.iter().filter_map(|i| listing.rows.get(*i as usize)) {
        let key = &row.lead.key;
        let at = (&row.lead.shape.accelerator, (key.provider.as_str(), key.region.as_str()));
        for offer in row.offers() {
            let cell = found.entry(at).or_insert_with(|| HeatCell { offer: offer.clone(), heat: 0 });
            if before(offer) < before(&cell.offer) {
                cell.offer = offer.clone();
            }
        }
    }
    let mut gpus: Vec<Accelerator> = found.keys().map(|(g, _)| (*g).clone()).collect();
    gpus.dedup();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (_, region) in found.keys() {
        *counts.entry(*region).or_default() += 1;
    }
    let mut regions: Vec<((&str, &str), usize)> = counts.into_iter().collect();
    regions.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut cells = BTreeMap::new();
    for (g, gpu) in gpus.iter().enumerate() {
        let of_gpu: Vec<(usize, HeatCell)> = regions
            .iter()
            .enumerate()
            .filter_map(|(r, (region, _))| found.get(&(gpu, *region)).map(|cell| (r, cell.clone())))
            .collect();
        let mut prices: Vec<GpuHourlyRate> = of_gpu.iter().filter_map(|(_, c)| c.offer.price_per_gpu()).collect();
        prices.sort_unstable();
        for (r, mut cell) in of_gpu {
            if let Some(price) = cell.offer.price_per_gpu() {
                let below = prices.partition_point(|p| *p < price);
                cell.heat = (below * 5 / prices.len().max(1)).min(4) as u8;
            }
            cells.insert((g, r), cell);
        }
    }
    let regions = regions.into_iter().map(|((p, r), _)| Location::region(p, r)).collect();
    HeatMap { gpus, regions, cells }
}

/// How many regions fit beside one another.
pub(crate) fn columns_in(width: u16) -> usize {
    usize::from(width.saturating_sub(LABEL + 1) / CELL)
}

/// Draw from a row and a column on, with the cursor on one cell.
pub(crate) fn draw(
    canvas: &mut Canvas<'_>,
    area: Rect,
    map: &HeatMap,
    at: (usize, usize),
    from: (usize, usize),
    now: DateTime<Utc>,
    focused: bool,
) {
    if area.height < 3 || area.width < LABEL + CELL {
        return;
    }
    let columns = columns_in(area.width);
    for (i, region) in map.regions.iter().enumerate().skip(from.1).take(columns) {
        let x = area.x + LABEL + 1 + (i - from.1) as u16 * CELL;
        let role = if i == at.1 { Role::Title } else { Role::Column };
        canvas.text(x, area.y, CELL - 1, region.provider.as_str(), Role::Muted);
        canvas.text(x, area.y + 1, CELL - 1, &short_region(region.region.as_str()), role);
    }
    for (g, gpu) in map.gpus.iter().enumerate().skip(from.0).take(usize::from(area.height - 2)) {
        let y = area.y + 2 + (g - from.0) as u16;
        canvas.text(area.x, y, 1, if g == at.0 { "▸" } else { " " }, Role::Key);
        canvas.text(area.x + 1, y, LABEL - 1, gpu.as_str(), if g == at.0 { Role::Title } else { Role::Text });
        for r in from.1..(from.1 + columns).min(map.regions.len()) {
            let x = area.x + LABEL + 1 + (r - from.1) as u16 * CELL;
            let here = Rect { x, y, width: CELL - 1, height: 1 };
            match map.cells.get(&(g, r)) {
                Some(cell) => {
                    let offer = &cell.offer;
                    let (mark, _, role) = availability_mark(offer.availability);
                    let (price, heat) = match offer.price_per_gpu() {
                        _ if too_old(offer, now) => ("?".to_owned(), None),
                        None => ("–".to_owned(), None),
                        Some(price) => (figure(price), Some(HEAT[usize::from(cell.heat.min(4))])),
                    };
                    if let Some(heat) = heat {
                        canvas.tint(here, heat);
                    }
                    let source = if heat.is_some() && !offer.price_is_live { "p" } else { " " };
                    let wide = crate::tui::paint::width(&price).min(CELL - 3);
                    canvas.text(x, y, 1, mark, heat.unwrap_or(role));
                    canvas.text(x + CELL - 2 - wide, y, wide, &price, heat.unwrap_or(role));
                    canvas.text(x + CELL - 2, y, 1, source, heat.unwrap_or(role));
                    if offer.stale {
                        canvas.tint(here, Role::Stale);
                    }
                }
                None => {
                    canvas.text(x + 4, y, 1, "·", Role::Border);
                }
            }
            if (g, r) == at {
                canvas.tint(here, if focused { Role::Selection } else { Role::SelectionIdle });
            }
        }
    }
}

/// A region's name in seven characters: directions shortened as operators write them (`us-east-1` → `use1`).
pub(crate) fn short_region(name: &str) -> String {
    const WORDS: [(&str, &str); 18] = [
        ("northeast", "ne"),
        ("southeast", "se"),
        ("northwest", "nw"),
        ("southwest", "sw"),
        ("central", "c"),
        ("north", "n"),
        ("south", "s"),
        ("east", "e"),
        ("west", "w"),
        ("europe", "eu"),
        ("asia", "as"),
        ("northamerica", "na"),
        ("southamerica", "sa"),
        ("australia", "au"),
        ("germany", "de"),
        ("france", "fr"),
        ("canada", "ca"),
        ("japan", "jp"),
    ];
    if name.len() <= 7 {
        return name.to_owned();
    }
    let mut rest = name.to_lowercase();
    let mut out = String::new();
    while !rest.is_empty() {
        let hit = WORDS.iter().filter(|(w, _)| rest.starts_with(w)).max_by_key(|(w, _)| w.len());
        if let Some((word, short)) = hit {
            out.push_str(short);
            rest = rest.split_off(word.len());
        } else {
            let c = rest.remove(0);
            if c != '-' && c != '_' {
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::short_region;

    #[test]
    fn regions_are_shortened_as_operators_write_them() {
        for (long, short) in [
            ("us-east-1", "use1"),
            ("europe-west4", "euw4"),
            ("westeurope", "weu"),
            ("ap-southeast-2", "apse2"),
            ("eastus2", "eastus2"),
            ("us-central1", "usc1"),
            ("germanywestcentral", "dewc"),
            ("asia-northeast1", "asne1"),
        ] {
            assert_eq!(short_region(long), short);
        }
    }
}
