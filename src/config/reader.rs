//! Reads TOML key by key, so that every wrong key and value is found at once, each with its line. The keys that were
//! asked for are the keys that are known: the list cannot fall behind the code.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::problem::{Origin, Problem, Written};

/// One file being read.
pub struct Reader {
    line_starts: Vec<usize>,
    problems: Vec<Problem>,
    /// Keys that exist in the format: those that were asked for.
    known: Vec<String>,
    /// Keys that are in the file, and their lines.
    present: Vec<(String, usize)>,
}

/// A table of the file.
pub struct Section<'t> {
    path: String,
    table: Option<&'t DeTable<'t>>,
}

impl Reader {
    /// Parse the text and hand its root to `read`; gives what that made, and every finding.
    pub fn read<T>(text: &str, read: impl FnOnce(&mut Self, &Section<'_>) -> T) -> (T, Vec<Problem>) {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        let mut reader = Self { line_starts, problems: Vec::new(), known: Vec::new(), present: Vec::new() };
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let line = error.span().map_or(1, |span| reader.line(span.start));
            reader.problem(Origin::Line(line), "", format!("this is not TOML: {}", error.message()));
        }
        let section = reader.open(String::new(), Some(root.get_ref()));
        let made = read(&mut reader, &section);
        // What does not parse leaves half keys behind; complaining about those too would only confuse.
        if errors.is_empty() {
            reader.unknown_keys();
        }
        (made, reader.problems)
    }

    /// Add a finding.
    pub fn problem(&mut self, at: Origin, key: &str, message: impl Into<String>) {
        self.problems.push(Problem { at, key: key.to_owned(), message: message.into() });
    }

    fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset).max(1)
    }

    fn at<T>(&self, value: &Spanned<T>) -> Origin {
        Origin::Line(self.line(value.span().start))
    }

    fn open<'t>(&mut self, path: String, table: Option<&'t DeTable<'t>>) -> Section<'t> {
        for key in table.into_iter().flat_map(|t| t.keys()) {
            let line = self.line(key.span().start);
            self.present.push((join(&path, key.get_ref()), line));
        }
        Section { path, table }
    }

    fn wrong_kind(&mut self, at: Origin, key: &str, wanted: &str, found: &DeValue<'_>) {
        let found = match found.type_str() {
            kind @ ("array" | "integer") => format!("an {kind}"),
            kind => format!("a {kind}"),
        };
        self.problem(at, key, format!("expected {wanted}, found {found}"));
    }

    fn unknown_keys(&mut self) {
        let unknown: Vec<(String, usize)> =
            self.present.iter().filter(|(key, _)| !self.known.contains(key)).cloned().collect();
        for (key, line) in unknown {
            let place =
                key.rsplit_once('.').map_or("at the top level".to_owned(), |(section, _)| format!("in [{section}]"));
            let leaf = key.rsplit('.').next().unwrap_or(&key);
            let message = match nearest_key(&key, &self.known) {
                Some(near) => format!("unknown key '{leaf}' {place}; the nearest known key is '{near}'"),
                None => format!("unknown key '{leaf}' {place}"),
            };
            self.problems.push(Problem { at: Origin::Line(line), key, message });
        }
    }
}

impl<'t> Section<'t> {
    /// Whether the table is in the file.
    pub fn is_present(&self) -> bool {
        self.table.is_some()
    }

    fn find(&self, reader: &mut Reader, key: &str) -> (String, Option<&'t Spanned<DeValue<'t>>>) {
        let path = join(&self.path, key);
        if !reader.known.contains(&path) {
            reader.known.push(path.clone());
        }
        let found = self.table.and_then(|t| t.get(key));
        (path, found)
    }

    /// A table in here; absent is an empty one.
    #[must_use]
    pub fn section(&self, reader: &mut Reader, key: &str) -> Self {
        let (path, found) = self.find(reader, key);
        let table = found.and_then(|value| match value.get_ref() {
            DeValue::Table(table) => Some(table),
            other => {
                reader.wrong_kind(reader.at(value), &path, "a table", other);
                None
            }
        });
        reader.open(path, table)
    }

    /// A table that is read as a whole by its own rules; the first thing that is wrong with it is told.
    pub fn whole_section<T: DeserializeOwned + Default>(&self, reader: &mut Reader, key: &str) -> T {
        let (path, found) = self.find(reader, key);
        let Some(value) = found else { return T::default() };
        T::deserialize(ValueDeserializer::from(value.clone())).unwrap_or_else(|error| {
            let line = error.span().map_or(reader.line(value.span().start), |span| reader.line(span.start));
            // "unknown field `x`, expected one of `a`, `b`"
            let words: Vec<&str> = error.message().split('`').skip(1).step_by(2).collect();
            let message = match words.split_first() {
                Some((unknown, known)) if error.message().starts_with("unknown field") => {
                    match nearest_word(unknown, known.iter().copied()).or(known.first().copied()) {
                        Some(near) => format!("unknown key '{unknown}'; the nearest known key is '{near}'"),
                        None => format!("unknown key '{unknown}'"),
                    }
                }
                _ => error.message().to_owned(),
            };
            reader.problem(Origin::Line(line), &path, message);
            T::default()
        })
    }

    /// Add a finding on a key somewhere below here, `aws.regions[2]`, at the line where it (or what leads to it) stands.
    pub fn problem_at(&self, reader: &mut Reader, key: &str, message: &str) {
        let mut table = self.table;
        let mut at = Origin::Missing;
        for step in key.split('.') {
            let name = step.split('[').next().unwrap_or(step);
            let Some((key, value)) = table.and_then(|t| t.get_key_value(name)) else { break };
            at = reader.at(key);
            table = value.get_ref().as_table();
        }
        reader.problem(at, &join(&self.path, key), message);
    }

    /// A text.
    pub fn text(&self, reader: &mut Reader, key: &str) -> Option<Written<String>> {
        let (path, found) = self.find(reader, key);
        let value = found?;
        let at = reader.at(value);
        text_of(reader, at, &path, value.get_ref()).map(|value| Written { value, at })
    }

    /// A whole number of at least 0.
    pub fn whole(&self, reader: &mut Reader, key: &str) -> Option<Written<u64>> {
        let (path, found) = self.find(reader, key);
        let value = found?;
        let at = reader.at(value);
        match value.get_ref() {
            DeValue::Integer(n) => match i128::from_str_radix(n.as_str(), n.radix()) {
                Ok(n) if n < 0 => {
                    reader.problem(at, &path, format!("{n} is negative"));
                    None
                }
                // Larger than any bound: the validation says which bound.
                n => Some(Written { value: n.ok().and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX), at }),
            },
            other => {
                reader.wrong_kind(at, &path, "a whole number", other);
                None
            }
        }
    }

    /// A number.
    pub fn number(&self, reader: &mut Reader, key: &str) -> Option<Written<f64>> {
        let (path, found) = self.find(reader, key);
        let value = found?;
        let at = reader.at(value);
        number_of(reader, at, &path, value.get_ref()).map(|value| Written { value, at })
    }

    /// True or false.
    pub fn switch(&self, reader: &mut Reader, key: &str) -> Option<Written<bool>> {
        let (path, found) = self.find(reader, key);
        let value = found?;
        let at = reader.at(value);
        if let DeValue::Boolean(on) = value.get_ref() {
            return Some(Written { value: *on, at });
        }
        reader.wrong_kind(at, &path, "true or false", value.get_ref());
        None
    }

    /// A moment: an RFC 3339 text, or a TOML date-time with its offset.
    pub fn time(&self, reader: &mut Reader, key: &str) -> Option<Written<DateTime<Utc>>> {
        let (path, found) = self.find(reader, key);
        let value = found?;
        let at = reader.at(value);
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Datetime(time) => time.to_string(),
            other => {
                reader.wrong_kind(at, &path, "a time such as \"2026-12-10T00:00:00Z\"", other);
                return None;
            }
        };
        match parse_time(&text) {
            Ok(value) => Some(Written { value, at }),
            Err(message) => {
                reader.problem(at, &path, message);
                None
            }
        }
    }

    /// A list of texts; one text alone is a list of one.
    pub fn texts(&self, reader: &mut Reader, key: &str) -> Option<Vec<Written<String>>> {
        let (path, found) = self.find(reader, key);
        let value = found?;
        let at = reader.at(value);
        match value.get_ref() {
            DeValue::Array(array) => {
                let mut texts = Vec::new();
                for item in array {
                    let at = reader.at(item);
                    if let Some(value) = text_of(reader, at, &path, item.get_ref()) {
                        texts.push(Written { value, at });
                    }
                }
                Some(texts)
            }
            DeValue::String(text) => Some(vec![Written { value: text.to_string(), at }]),
            other => {
                reader.wrong_kind(at, &path, "a list of texts", other);
                None
            }
        }
    }

    /// A list of tables.
    pub fn sections(&self, reader: &mut Reader, key: &str) -> Option<Vec<(Origin, Self)>> {
        let (path, found) = self.find(reader, key);
        let value = found?;
        let at = reader.at(value);
        let DeValue::Array(array) = value.get_ref() else {
            reader.wrong_kind(at, &path, "a list of tables", value.get_ref());
            return None;
        };
        let mut sections = Vec::new();
        for item in array {
            let at = reader.at(item);
            match item.get_ref() {
                DeValue::Table(table) => sections.push((at, reader.open(path.clone(), Some(table)))),
                other => reader.wrong_kind(at, &path, "a table", other),
            }
        }
        Some(sections)
    }

    /// A table of the user's own keys, each with a text; numbers and switches are taken as their text.
    pub fn free_texts(&self, reader: &mut Reader, key: &str) -> Option<BTreeMap<String, Written<String>>> {
        self.free(reader, key, |reader, at, path, value| match value {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Boolean(on) => Some(on.to_string()),
            DeValue::Integer(n) => Some(n.to_string()),
            DeValue::Float(n) => Some(n.to_string()),
            other => {
                reader.wrong_kind(at, path, "a text", other);
                None
            }
        })
    }

    /// A table of the user's own keys, each with one text or a list of texts.
    pub fn free_lists(&self, reader: &mut Reader, key: &str) -> Option<BTreeMap<String, Written<Vec<String>>>> {
        self.free(reader, key, |reader, at, path, value| match value {
            DeValue::String(text) => Some(vec![text.to_string()]),
            DeValue::Array(array) => Some(
                array
                    .iter()
                    .filter_map(|item| {
                        let at = reader.at(item);
                        text_of(reader, at, path, item.get_ref())
                    })
                    .collect(),
            ),
            other => {
                reader.wrong_kind(at, path, "a text or a list of texts", other);
                None
            }
        })
    }

    fn free<T>(
        &self,
        reader: &mut Reader,
        key: &str,
        mut read: impl FnMut(&mut Reader, Origin, &str, &DeValue<'_>) -> Option<T>,
    ) -> Option<BTreeMap<String, Written<T>>> {
        let (path, found) = self.find(reader, key);
        let value = found?;
        let at = reader.at(value);
        let DeValue::Table(table) = value.get_ref() else {
            reader.wrong_kind(at, &path, "a table", value.get_ref());
            return None;
        };
        let mut all = BTreeMap::new();
        for (name, value) in table {
            let at = reader.at(name);
            let path = join(&path, name.get_ref());
            if let Some(value) = read(reader, at, &path, value.get_ref()) {
                all.insert(name.get_ref().to_string(), Written { value, at });
            }
        }
        Some(all)
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn text_of(reader: &mut Reader, at: Origin, path: &str, value: &DeValue<'_>) -> Option<String> {
    if let DeValue::String(text) = value {
        return Some(text.to_string());
    }
    reader.wrong_kind(at, path, "a text", value);
    None
}

fn number_of(reader: &mut Reader, at: Origin, path: &str, value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(n) => {
            i128::from_str_radix(n.as_str(), n.radix()).map_or(Some(f64::INFINITY), |n| Some(n as f64))
        }
        DeValue::Float(n) => n.as_str().parse().ok().or_else(|| {
            reader.problem(at, path, format!("'{}' is not a number", n.as_str()));
            None
        }),
        other => {
            reader.wrong_kind(at, path, "a number", other);
            None
        }
    }
}

/// A moment from an RFC 3339 text. A text without an offset is refused: nobody knows whose clock it means.
pub fn parse_time(text: &str) -> Result<DateTime<Utc>, String> {
    DateTime::parse_from_rfc3339(text.trim()).map(|t| t.with_timezone(&Utc)).map_err(|_not_a_time| {
        format!(
            "'{}' is not a time with its offset; write it as 2026-12-10T00:00:00Z",
            text.chars().take(40).collect::<String>()
        )
    })
}

/// The known key that is most like `key`: the same word in another section first, else the fewest changes, those in
/// the same section preferred.
fn nearest_key<'k>(key: &str, known: &'k [String]) -> Option<&'k str> {
    let (section, leaf) = key.rsplit_once('.').unwrap_or(("", key));
    known
        .iter()
        .min_by_key(|candidate| {
            let (its_section, its_leaf) = candidate.rsplit_once('.').unwrap_or(("", candidate));
            changes(leaf, its_leaf) * 2 + usize::from(its_section != section)
        })
        .map(|key| key.strip_prefix(section).and_then(|k| k.strip_prefix('.')).unwrap_or(key))
}

/// How many changes make one word of the other. A word that merely goes on (`gpu` and `gpu_count`) is nearer than its
/// length says.
fn changes(a: &str, b: &str) -> usize {
    let changes = strsim::damerau_levenshtein(a, b);
    let goes_on = !a.is_empty() && !b.is_empty() && (a.starts_with(b) || b.starts_with(a));
    if goes_on { changes.min(2) } else { changes }
}

/// The word that is most like `word`, if any is like it at all.
pub fn nearest_word<'w>(word: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let lower = word.to_lowercase();
    words
        .into_iter()
        .map(|w| (changes(&lower, &w.to_lowercase()), w))
        .min_by_key(|(changes, _)| *changes)
        .filter(|(changes, w)| *changes <= (w.chars().count().max(lower.chars().count()) / 2).max(1))
        .map(|(_, w)| w)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Problem> {
        Reader::read(text, |r, root| {
            root.text(r, "name");
            let resources = root.section(r, "resources");
            resources.whole(r, "count");
            resources.number(r, "memory_gib");
            root.time(r, "deadline");
        })
        .1
    }

    #[test]
    fn an_unknown_key_is_told_with_its_line_and_the_nearest_key() {
        let problems = found("name = 'x'\n\n[resources]\ncuont = 8\n");
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].at, Origin::Line(4));
        assert!(problems[0].message.contains("unknown key 'cuont' in [resources]"), "{}", problems[0].message);
        assert!(problems[0].message.contains("'count'"), "{}", problems[0].message);
    }

    #[test]
    fn a_key_in_the_wrong_section_is_told_where_it_belongs() {
        let problems = found("count = 8");
        assert!(problems[0].message.contains("'resources.count'"), "{}", problems[0].message);
    }

    #[test]
    fn every_wrong_value_is_found_at_once() {
        let problems = found("name = 1\ndeadline = 'tomorrow'\n[resources]\ncount = -1\nmemory_gib = 'much'");
        let lines: Vec<Origin> = problems.iter().map(|p| p.at).collect();
        assert_eq!(lines.len(), 4, "{problems:?}");
        for line in [1, 2, 4, 5] {
            assert!(lines.contains(&Origin::Line(line)), "{problems:?}");
        }
    }

    #[test]
    fn f1_a_time_without_an_offset_is_refused() {
        assert!(parse_time("2026-12-10T00:00:00").is_err());
        assert_eq!(
            parse_time("2026-12-10T05:30:00+05:30").map(|t| t.to_rfc3339()),
            Ok("2026-12-10T00:00:00+00:00".to_owned())
        );
        assert_eq!(found("deadline = 2026-12-10T00:00:00Z"), []);
        assert_eq!(found("deadline = 2026-12-10").len(), 1);
    }

    #[test]
    fn what_is_not_toml_says_where() {
        let problems = found("name = 'x'\n[resources\ncount = 1");
        assert!(problems.iter().any(|p| p.at == Origin::Line(2) && p.message.contains("not TOML")), "{problems:?}");
    }
}
