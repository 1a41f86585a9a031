//! Idempotency tokens and names of machines.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::domain::{OfferKey, OperationId};

/// The token of one machine: the same for the same wish, another for every other attempt or offer. It covers the
/// offer, because providers refuse a token that comes back with other parameters. 52 lower-case letters and digits.
pub fn token(operation: &OperationId, attempt: u32, node: u32, offer: &OfferKey) -> String {
    let mut text = String::new();
    let zone = offer.zone.as_ref().map_or("", |z| z.as_str());
    for part in [operation.as_str(), offer.provider.as_str(), offer.region.as_str(), zone, offer.instance_type.as_str()]
    {
        // With its length, so that no two wishes read the same.
        let _ = write!(text, "{}:{part};", part.len());
    }
    let _ = write!(text, "{};{attempt};{node}", offer.purchase.as_str());
    base32(&Sha256::digest(text.as_bytes()))
}

/// The machine's name: at most 40 lower-case letters, digits and `-`, beginning with a letter.
pub fn name(token: &str) -> String {
    let mut name = String::from("gpudeck-");
    name.extend(token.chars().take(26));
    name
}

/// RFC 4648's alphabet in lower case, without padding: allowed in every provider's labels and names.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut out = String::with_capacity(bytes.len() * 8 / 5 + 1);
    let (mut held, mut bits) = (0_u32, 0_u32);
    let mut push = |five: u32| out.extend(ALPHABET.get((five & 31) as usize).map(|b| char::from(*b)));
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            push(held >> bits);
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        push(held << (5 - bits));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Purchase;

    fn offer(zone: Option<&str>, instance_type: &str) -> OfferKey {
        OfferKey {
            provider: "aws".into(),
            region: "us-east-1".into(),
            zone: zone.map(Into::into),
            instance_type: instance_type.into(),
            purchase: Purchase::Spot,
        }
    }

    #[test]
    fn a13_a_token_is_the_same_for_the_same_wish_and_another_for_every_other() {
        let op = OperationId::from("0190-op");
        let of = |attempt, node, zone, kind| token(&op, attempt, node, &offer(zone, kind));
        let first = of(1, 0, Some("a"), "p5");
        assert_eq!(first, of(1, 0, Some("a"), "p5"));
        for other in [
            of(2, 0, Some("a"), "p5"),
            of(1, 1, Some("a"), "p5"),
            of(1, 0, Some("b"), "p5"),
            of(1, 0, Some("a"), "p4"),
            of(1, 0, None, "p5"),
        ] {
            assert_ne!(first, other);
        }
        assert!(first.len() <= 64 && first.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()), "{first}");
        let name = name(&first);
        assert!(name.len() <= 40 && name.starts_with("gpudeck-"), "{name}");
    }

    #[test]
    fn base32_as_in_rfc_4648() {
        assert_eq!(base32(b"foobar"), "mzxw6ytboi");
        assert_eq!(base32(b"f"), "my");
    }
}
