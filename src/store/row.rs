//! From columns to nouns and back.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row, Sqlite, Type};

use super::error::{Result, StoreError};

pub(super) fn micros(at: DateTime<Utc>) -> i64 {
    at.timestamp_micros()
}

pub(super) fn time(micros: i64) -> Result<DateTime<Utc>> {
    DateTime::from_timestamp_micros(micros).ok_or_else(|| StoreError::unreadable("a time", micros))
}

pub(super) fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|e| StoreError::Other(format!("cannot write JSON: {e}")))
}

pub(super) fn parse<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| StoreError::unreadable(what, e))
}

/// Reading a row by column names.
pub(super) trait Columns {
    fn value<'r, T: Decode<'r, Sqlite> + Type<Sqlite>>(&'r self, column: &str) -> Result<T>;
    fn at(&self, column: &str) -> Result<DateTime<Utc>>;
    fn maybe_at(&self, column: &str) -> Result<Option<DateTime<Utc>>>;
    fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T>;
    fn maybe_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>>;
    fn count(&self, column: &str) -> Result<u32>;
}

impl Columns for SqliteRow {
    fn value<'r, T: Decode<'r, Sqlite> + Type<Sqlite>>(&'r self, column: &str) -> Result<T> {
        Ok(self.try_get(column)?)
    }
    fn at(&self, column: &str) -> Result<DateTime<Utc>> {
        time(self.value(column)?)
    }
    fn maybe_at(&self, column: &str) -> Result<Option<DateTime<Utc>>> {
        self.value::<Option<i64>>(column)?.map(time).transpose()
    }
    fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        parse(column, self.value(column)?)
    }
    fn maybe_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>> {
        self.value::<Option<&str>>(column)?.map(|text| parse(column, text)).transpose()
    }
    fn count(&self, column: &str) -> Result<u32> {
        let n: i64 = self.value(column)?;
        u32::try_from(n).ok().ok_or_else(|| StoreError::unreadable(column, n))
    }
}
