//! What is typed after `/`: words that are matched fuzzily (by their letters or the beginnings of words) against each
//! field of a row, and conditions such as
//! `gpu:h100 price<4 spot cloud:aws !region:us-*`. All parts must hold.

use crate::catalogue::accelerators;
use crate::domain::Accelerator;

/// The field with a GPU type, by its canonical name.
const GPU: &str = "gpu";

/// What a row says of itself to a filter.
pub(crate) trait Filterable {
    /// Fields with texts (`gpu`, `cloud`, …) and fields with numbers (`price`, …) that it has.
    const TEXTS: &'static [&'static str];
    const NUMBERS: &'static [&'static str];
    /// Words that stand for themselves (`spot`, `available`, …).
    const FLAGS: &'static [&'static str];
    /// Hand each value of a text field (every one for `None`) to the visitor until it says true.
    fn texts(&self, field: Option<&str>, visit: &mut dyn FnMut(&str) -> bool) -> bool;
    /// The number of a field; `None` where it is not known, and an unknown number meets no condition.
    fn number(&self, field: &str) -> Option<f64>;
    /// Whether the word holds of it.
    fn flag(&self, word: &str) -> bool;
}

/// What is wrong with a filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FilterError {
    #[error("no field '{field}' here; there are {known}")]
    Field { field: String, known: String },
    #[error("'{text}' is not a number")]
    Number { text: String },
    #[error("'{field}' needs a value, such as {field}{example}")]
    Value { field: String, example: &'static str },
    #[error("'{field}' is a text; write {field}:VALUE")]
    NotNumber { field: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
}

#[derive(Debug, Clone)]
enum Test {
    /// It is one of these GPU types; or its name, where it has one, contains the word, which stood alone.
    Gpu {
        wanted: Vec<Accelerator>,
        word: Option<String>,
    },
    /// Any field matches fuzzily.
    Fuzzy(String),
    /// Any field contains it (for what is excluded, where fuzzy would exclude too much).
    Contains(String),
    /// This field contains it, or matches it where it has a `*`.
    Text {
        field: String,
        pattern: String,
    },
    Number {
        field: String,
        comparison: Comparison,
        value: f64,
    },
    Flag(String),
}

#[derive(Debug, Clone)]
struct Term {
    negated: bool,
    test: Test,
}

/// A filter as meant.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    terms: Vec<Term>,
}

impl Filter {
    /// From what is typed, for rows of this kind. What is wrong is told; the other terms hold all the same.
    pub(crate) fn parse<R: Filterable>(text: &str) -> (Self, Option<FilterError>) {
        let mut terms = Vec::new();
        let mut wrong = None;
        for token in text.split_whitespace() {
            let (negated, token) = match token.strip_prefix('!') {
                Some(rest) => (true, rest),
                None => (false, token),
            };
            if token.is_empty() {
                continue;
            }
            match test::<R>(token, negated) {
                Ok(test) => terms.push(Term { negated, test }),
                Err(error) => wrong = wrong.or(Some(error)),
            }
        }
        (Self { terms }, wrong)
    }

    /// Whether it lets everything through.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether a row passes. `scratch` is kept from row to row.
    pub(crate) fn admits<R: Filterable>(&self, row: &R, scratch: &mut Scratch) -> bool {
        self.terms.iter().all(|term| {
            let holds = match &term.test {
                Test::Gpu { wanted, word } => {
                    row.texts(Some(GPU), &mut |value| wanted.iter().any(|gpu| is_of(value, gpu)))
                        || word.as_ref().is_some_and(|w| row.texts(Some("name"), &mut |value| contains(value, w)))
                }
                Test::Fuzzy(needle) => row.texts(None, &mut |value| fuzzy(value, needle, scratch)),
                Test::Contains(needle) => row.texts(None, &mut |value| contains(value, needle)),
                Test::Text { field, pattern } => row.texts(Some(field), &mut |value| {
                    if pattern.contains('*') { glob(pattern, value) } else { contains(value, pattern) }
                }),
                Test::Number { field, comparison, value } => match (row.number(field), comparison) {
                    // Not known is neither below nor above, also when the condition is turned round.
                    (None, _) => return false,
                    (Some(n), Comparison::Less) => n < *value,
                    (Some(n), Comparison::AtMost) => n <= *value,
                    (Some(n), Comparison::More) => n > *value,
                    (Some(n), Comparison::AtLeast) => n >= *value,
                    (Some(n), Comparison::Equal) => (n - value).abs() < 1e-9,
                },
                Test::Flag(word) => row.flag(word),
            };
            holds != term.negated
        })
    }
}

/// Memory that matching needs.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Where in a text the needle may have come to, before and after its next letter.
    reached: Vec<bool>,
    next: Vec<bool>,
}

/// Whether the text contains the lower-case needle, or has it as beginnings of its words: `use1` is in `us-east-1`, and
/// `eu` is not in `default`. Letters picked from anywhere would let through what nobody meant.
fn fuzzy(text: &str, needle: &str, scratch: &mut Scratch) -> bool {
    if contains(text, needle) {
        return true;
    }
    let mut letters: Vec<char> = Vec::with_capacity(text.len());
    letters.extend(text.chars().flat_map(char::to_lowercase));
    let kind = |c: char| {
        if c.is_alphabetic() {
            1
        } else if c.is_numeric() {
            2
        } else {
            0
        }
    };
    let begins = |at: usize| {
        let here = letters.get(at).map_or(0, |c| kind(*c));
        here != 0 && (at == 0 || letters.get(at - 1).map_or(0, |c| kind(*c)) != here)
    };
    let Scratch { reached, next } = scratch;
    reached.clear();
    reached.resize(letters.len() + 1, false);
    let mut first = Some(0);
    for (n, wanted) in needle.chars().enumerate() {
        let Some(from) = first else { return false };
        next.clear();
        next.resize(letters.len() + 1, false);
        first = None;
        for (at, letter) in letters.iter().enumerate().skip(from) {
            let goes_on = n > 0 && reached.get(at).copied().unwrap_or_default();
            if *letter == wanted && (goes_on || begins(at)) {
                if let Some(place) = next.get_mut(at + 1) {
                    *place = true;
                }
                first = first.or(Some(at + 1));
            }
        }
        std::mem::swap(reached, next);
    }
    first.is_some()
}

/// Other names of fields, as the command line and the JSON have them.
const ALIASES: [(&str, &str); 4] =
    [("jurisdiction", "law"), ("provider", "cloud"), ("accelerator", "gpu"), ("instance", "type")];

fn canonical<R: Filterable>(field: &str) -> &str {
    let own = R::TEXTS.contains(&field) || R::NUMBERS.contains(&field);
    let alias = ALIASES.iter().find(|(name, of)| !own && *name == field && R::TEXTS.contains(of));
    alias.map_or(field, |(_, of)| of)
}

fn test<R: Filterable>(token: &str, negated: bool) -> Result<Test, FilterError> {
    let lower = token.to_lowercase();
    if R::FLAGS.contains(&lower.as_str()) {
        return Ok(Test::Flag(lower));
    }
    let operator = [
        ("<=", Comparison::AtMost),
        (">=", Comparison::AtLeast),
        ("<", Comparison::Less),
        (">", Comparison::More),
        ("=", Comparison::Equal),
    ]
    .into_iter()
    .filter_map(|(sign, comparison)| lower.find(sign).map(|at| (at, sign, comparison)))
    // At the same place `<=` comes before `<`.
    .min_by_key(|(at, sign, _)| (*at, 2 - sign.len()));
    if let Some((at, sign, comparison)) = operator {
        let (field, value) = (lower.get(..at).unwrap_or_default(), lower.get(at + sign.len()..).unwrap_or_default());
        let field = canonical::<R>(field);
        if R::NUMBERS.contains(&field) {
            if value.is_empty() {
                return Err(FilterError::Value { field: field.to_owned(), example: "<4" });
            }
            let value: f64 = value
                .trim_start_matches('$')
                .parse()
                .ok()
                .filter(|v: &f64| v.is_finite())
                .ok_or_else(|| FilterError::Number { text: value.to_owned() })?;
            return Ok(Test::Number { field: field.to_owned(), comparison, value });
        }
        if R::TEXTS.contains(&field) {
            if comparison == Comparison::Equal && !value.is_empty() {
                return Ok(Test::Text { field: field.to_owned(), pattern: value.to_owned() });
            }
            return Err(FilterError::NotNumber { field: field.to_owned() });
        }
        return Err(unknown::<R>(field));
    }
    if let Some((field, value)) = lower.split_once(':') {
        let field = canonical::<R>(field);
        if !R::TEXTS.contains(&field) {
            return Err(if R::NUMBERS.contains(&field) {
                FilterError::Value { field: field.to_owned(), example: "<4" }
            } else {
                unknown::<R>(field)
            });
        }
        if value.is_empty() {
            return Err(FilterError::Value { field: field.to_owned(), example: ":value" });
        }
        if field == GPU
            && let Some(wanted) = gpus::<R>(value)
        {
            return Ok(Test::Gpu { wanted, word: None });
        }
        return Ok(Test::Text { field: field.to_owned(), pattern: value.to_owned() });
    }
    if let Some(wanted) = gpus::<R>(&lower) {
        return Ok(Test::Gpu { wanted, word: Some(lower) });
    }
    if negated {
        return Ok(Test::Contains(lower));
    }
    Ok(Test::Fuzzy(lower))
}

/// The GPU types that a word names, as the command line's `--gpu` reads it: `h100` is no H200, and `l4` no L40S.
fn gpus<R: Filterable>(word: &str) -> Option<Vec<Accelerator>> {
    if !R::TEXTS.contains(&GPU) {
        return None;
    }
    accelerators::select(word).ok()
}

/// Whether a chip's name is this one, or this one with a variant that the table does not list.
fn is_of(name: &str, gpu: &Accelerator) -> bool {
    name.strip_prefix(gpu.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn unknown<R: Filterable>(field: &str) -> FilterError {
    let known = R::TEXTS.iter().chain(R::NUMBERS).copied().collect::<Vec<_>>().join(", ");
    FilterError::Field { field: field.chars().take(24).collect(), known }
}

/// Whether the text contains the lower-case needle, whatever its case.
fn contains(text: &str, needle: &str) -> bool {
    if text.is_ascii() && needle.is_ascii() {
        return needle.is_empty()
            || text.as_bytes().windows(needle.len()).any(|w| w.eq_ignore_ascii_case(needle.as_bytes()));
    }
    text.to_lowercase().contains(needle)
}

/// Whether the whole text matches the lower-case pattern, in which `*` stands for anything.
fn glob(pattern: &str, text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match rest.find(part).and_then(|at| rest.get(at + part.len()..)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    struct Row;
    impl Filterable for Row {
        const TEXTS: &'static [&'static str] = &["gpu", "cloud", "region"];
        const NUMBERS: &'static [&'static str] = &["price", "count", "spread"];
        const FLAGS: &'static [&'static str] = &["spot", "stale"];
        fn texts(&self, field: Option<&str>, visit: &mut dyn FnMut(&str) -> bool) -> bool {
            [("gpu", "H100-80GB-SXM"), ("cloud", "aws"), ("region", "us-east-1")]
                .iter()
                .any(|(f, v)| field.is_none_or(|asked| asked == *f) && visit(v))
        }
        fn number(&self, field: &str) -> Option<f64> {
            match field {
                "price" => Some(2.5),
                "count" => Some(8.0),
                _ => None,
            }
        }
        fn flag(&self, word: &str) -> bool {
            word == "spot"
        }
    }

    #[rstest]
    #[case("", true)]
    #[case("h100", true)]
    #[case("h1sxm", true)]
    #[case("h200", false)]
    #[case("use1", true)]
    #[case("useast1", true)]
    #[case("ea", true)]
    #[case("eu", false)]
    #[case("ast", true)]
    #[case("ut1", false)]
    #[case("provider:aws", true)]
    #[case("!provider:aws", false)]
    #[case("gpu:h100 price<4 spot cloud:aws !region:eu-*", true)]
    #[case("region:us-*", true)]
    #[case("!region:us-*", false)]
    #[case("region:*-east-*", true)]
    #[case("region:*-west-*", false)]
    #[case("region:us-east-1", true)]
    #[case("region=us", true)]
    #[case("price<2.5", false)]
    #[case("price<=2.5", true)]
    #[case("price>=$2.5", true)]
    #[case("price>2.5", false)]
    #[case("price=2.5 count=8", true)]
    #[case("!price<4", false)]
    #[case("spread<4", false)]
    #[case("!spread<4", false)]
    #[case("stale", false)]
    #[case("!stale", true)]
    #[case("!azure", true)]
    #[case("!aws", false)]
    #[case("AWS", true)]
    fn matches(#[case] text: &str, #[case] expected: bool) {
        let (filter, wrong) = Filter::parse::<Row>(text);
        assert_eq!(wrong, None);
        assert_eq!(filter.admits(&Row, &mut Scratch::default()), expected, "{text}");
    }

    struct Gpu(&'static str);
    impl Filterable for Gpu {
        const TEXTS: &'static [&'static str] = &["gpu", "cloud"];
        const NUMBERS: &'static [&'static str] = &[];
        const FLAGS: &'static [&'static str] = &[];
        fn texts(&self, field: Option<&str>, visit: &mut dyn FnMut(&str) -> bool) -> bool {
            let of = |name: &str| field.is_none_or(|asked| asked == name);
            (of("gpu") && visit(self.0)) || (of("cloud") && visit("azure-h100-t4"))
        }
        fn number(&self, _: &str) -> Option<f64> {
            None
        }
        fn flag(&self, _: &str) -> bool {
            false
        }
    }

    /// A chip that is named is that chip, alone or behind `gpu:`; fuzzy only what names none.
    #[rstest]
    #[case("h100", &["H100-80GB-SXM", "H100-80GB-PCIe", "H100-94GB-NVL"], &["H200-141GB-SXM", "A100-80GB-SXM"])]
    #[case("a100", &["A100-40GB-SXM", "A100-80GB-PCIe"], &["GB200", "A10", "H100-80GB-SXM"])]
    #[case("l4", &["L4"], &["L40S", "L40"])]
    #[case("a10", &["A10"], &["A10G", "A100-80GB-SXM"])]
    #[case("t4", &["T4"], &["B200", "T4G"])]
    #[case("h200", &["H200-141GB-SXM"], &["GH200-96GB", "B200"])]
    fn b14_a_chip_that_is_named_is_that_chip(
        #[case] word: &str,
        #[case] yes: &[&'static str],
        #[case] no: &[&'static str],
    ) {
        let canonical = |name: &&'static str| -> &'static str { name };
        for text in [word.to_owned(), format!("gpu:{word}"), word.to_uppercase(), format!("!{word}")] {
            let filter = Filter::parse::<Gpu>(&text).0;
            let admits = |name| filter.admits(&Gpu(name), &mut Scratch::default());
            let negated = text.starts_with('!');
            for name in yes.iter().map(canonical) {
                assert_eq!(admits(name), !negated, "{text} on {name}");
            }
            for name in no.iter().map(canonical) {
                assert_eq!(admits(name), negated, "{text} on {name}");
            }
        }
    }

    #[rstest]
    #[case("colour:red", "no field 'colour' here; there are gpu, cloud, region, price, count, spread")]
    #[case("price<", "'price' needs a value, such as price<4")]
    #[case("price<cheap", "'cheap' is not a number")]
    #[case("price:4", "'price' needs a value, such as price<4")]
    #[case("gpu:", "'gpu' needs a value, such as gpu:value")]
    #[case("gpu<4", "'gpu' is a text; write gpu:VALUE")]
    #[case("speed>4", "no field 'speed' here; there are gpu, cloud, region, price, count, spread")]
    fn tells_what_is_wrong(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(Filter::parse::<Row>(text).1.unwrap().to_string(), expected);
        assert!(
            Filter::parse::<Row>(&format!("{text} h100")).0.admits(&Row, &mut Scratch::default()),
            "the rest still holds"
        );
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,40}") {
            let _ = Filter::parse::<Row>(&text).0.admits(&Row, &mut Scratch::default());
        }
    }
}
