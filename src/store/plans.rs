//! Plans as they were confirmed.

use sqlx::Row;

use super::error::Result;
use super::ledger::Tx;
use super::row::{json, micros, parse};
use crate::domain::{JobId, Plan, PlanId};

impl Tx {
    /// Keep a plan.
    pub async fn insert_plan(&mut self, plan: &Plan, job: &JobId) -> Result<()> {
        sqlx::query("INSERT INTO plans (id, job, plan, made_at) VALUES (?, ?, ?, ?)")
            .bind(plan.id.as_str())
            .bind(job.as_str())
            .bind(json(plan)?)
            .bind(micros(plan.made_at))
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// A plan by its id.
    pub async fn plan(&mut self, id: &PlanId) -> Result<Option<Plan>> {
        let row = sqlx::query("SELECT plan FROM plans WHERE id = ?")
            .bind(id.as_str())
            .fetch_optional(self.connection())
            .await?;
        row.map(|r| parse("a plan", r.try_get("plan")?)).transpose()
    }
}
