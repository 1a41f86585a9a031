//! When the next frame may be drawn.

use std::time::Duration;

use crate::config::limits;

/// Keeps frames apart: a little for keys, more for data, more still where the terminal takes its writes slowly.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limiter {
    last: Option<Duration>,
    stretch: u32,
}

impl Limiter {
    /// The earliest moment for the next frame.
    pub(crate) fn due(&self, for_key: bool) -> Duration {
        let Some(last) = self.last else { return Duration::ZERO };
        let apart = if for_key { limits::FRAME_KEY } else { limits::FRAME_DATA };
        last + (apart * 2_u32.pow(self.stretch)).min(limits::FRAME_MAX)
    }

    /// A frame was shown, and its write took so long.
    pub(crate) fn shown(&mut self, at: Duration, write: Duration) {
        self.last = Some(at);
        if write > limits::FRAME_SLOW_WRITE {
            self.stretch = (self.stretch + 1).min(8);
        } else {
            self.stretch = self.stretch.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_shown_sooner_than_data_and_a_slow_terminal_slows_both() {
        let ms = Duration::from_millis;
        let mut limiter = Limiter::default();
        assert_eq!(limiter.due(false), Duration::ZERO);
        limiter.shown(ms(1000), ms(1));
        assert_eq!(limiter.due(true), ms(1000) + limits::FRAME_KEY);
        assert_eq!(limiter.due(false), ms(1000) + limits::FRAME_DATA);
        limiter.shown(ms(2000), ms(500));
        assert_eq!(limiter.due(false), ms(2000) + 2 * limits::FRAME_DATA);
        for _ in 0..20 {
            limiter.shown(ms(3000), ms(500));
        }
        assert_eq!(limiter.due(false), ms(3000) + limits::FRAME_MAX);
        for _ in 0..20 {
            limiter.shown(ms(4000), ms(1));
        }
        assert_eq!(limiter.due(true), ms(4000) + limits::FRAME_KEY);
    }
}
