//! Places that failed lately and are left alone for now.

use chrono::{DateTime, Utc};

use super::error::{Result, StoreError};
use super::ledger::Tx;
use super::row::{Columns, micros};
use crate::domain::Purchase;
use crate::placement::Cooling;

impl Tx {
    /// Leave a place alone until then; a longer cool-down that it already has stays.
    pub async fn cool(&mut self, cooling: &Cooling) -> Result<()> {
        sqlx::query(
            "INSERT INTO cooldowns (location, purchase, until, reason) VALUES (?, ?, ?, ?) ON CONFLICT (location, purchase) \
             DO UPDATE SET until = excluded.until, reason = excluded.reason WHERE excluded.until > cooldowns.until",
        )
        .bind(cooling.location.to_string())
        .bind(cooling.purchase.map_or("any", Purchase::as_str))
        .bind(micros(cooling.until))
        .bind(&cooling.reason)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// The places that are left alone at that time.
    pub async fn cooling(&mut self, now: DateTime<Utc>) -> Result<Vec<Cooling>> {
        let rows = sqlx::query("SELECT * FROM cooldowns WHERE until > ? ORDER BY location, purchase")
            .bind(micros(now))
            .fetch_all(self.connection())
            .await?;
        rows.iter()
            .map(|row| {
                let location: &str = row.value("location")?;
                Ok(Cooling {
                    location: location.parse().map_err(|e| StoreError::unreadable("a cool-down's place", e))?,
                    purchase: Purchase::parse(row.value("purchase")?),
                    until: row.at("until")?,
                    reason: row.value("reason")?,
                })
            })
            .collect()
    }
}
