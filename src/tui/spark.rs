//! A history in a few characters.

use super::paint::Part;
use super::theme::Role;
use crate::domain::HourlyRate;
use crate::market::History;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Values as bars between their lowest and highest; a gap where a value is not known.
pub(crate) fn bars(values: &[Option<f64>]) -> String {
    let known = values.iter().flatten().copied();
    let low = known.clone().fold(f64::INFINITY, f64::min);
    let high = known.fold(f64::NEG_INFINITY, f64::max);
    values
        .iter()
        .map(|value| match value {
            None => ' ',
            // Nothing moved: a line at mid height, neither low nor high.
            Some(_) if high - low < 1e-9 => LEVELS[3],
            Some(v) => LEVELS[(((v - low) / (high - low)) * 7.0).round().clamp(0.0, 7.0) as usize],
        })
        .collect()
}

/// The last points of an offer's price. A history holds a point only where something changed, so a single point is not a trend.
pub(crate) fn trend(history: Option<&History>, columns: usize) -> Vec<Part<'static>> {
    let Some(history) = history.filter(|h| h.points().len() > 1) else {
        return vec![("–".into(), Role::Muted)];
    };
    let points = history.points();
    let skip = points.len().saturating_sub(columns);
    let values: Vec<Option<f64>> = points.skip(skip).map(|p| p.price.map(HourlyRate::to_usd)).collect();
    vec![(bars(&values).into(), Role::Spark)]
}

#[cfg(test)]
mod tests {
    use super::bars;

    #[test]
    fn lowest_and_highest_reach_the_ends_and_gaps_stay_gaps() {
        assert_eq!(bars(&[Some(1.0), None, Some(2.0), Some(3.0)]), "▁ ▅█");
        assert_eq!(bars(&[Some(2.0), Some(2.0)]), "▄▄");
        assert_eq!(bars(&[None]), " ");
        assert_eq!(bars(&[]), "");
    }
}
