//! Lists of the resource manager, page by page and row by row.
//!
//! The management crate reads a page as a whole, by closed lists of words: one new word in one row loses the page, and a
//! machine that is not seen still bills. So lists are asked for and read here, each row by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use azure_core::auth::TokenCredential;
use azure_core::headers::AUTHORIZATION;
use azure_core::{HttpClient as _, Method, Request, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::transport::Transport;
use super::{Result, errors, skip};
use crate::config::limits::AZURE_MAX_PAGES;
use crate::domain::{ErrorClass, ProviderId};

/// What reads answers of the resource manager.
pub(super) struct Pages {
    pub(super) id: ProviderId,
    pub(super) endpoint: Url,
    pub(super) credential: Arc<dyn TokenCredential>,
    pub(super) transport: Arc<Transport>,
}

/// Which list.
pub(super) struct List<'a> {
    /// As the vendor's documentation calls the call.
    pub(super) operation: &'a str,
    pub(super) path: String,
    pub(super) version: &'a str,
    pub(super) query: Vec<(&'a str, String)>,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    value: Vec<Value>,
    #[serde(rename = "nextLink")]
    next: Option<String>,
}

impl Pages {
    /// Give every row of a list to `take`; a row that is not a `T` is counted. Rows of pages before one that fails have
    /// been taken.
    pub(super) async fn rows<T: DeserializeOwned>(
        &self,
        list: &List<'_>,
        skipped: &mut BTreeMap<String, u32>,
        mut take: impl FnMut(T, &mut BTreeMap<String, u32>) + Send,
    ) -> Result<()> {
        let mut url = self.endpoint.clone();
        url.set_path(&list.path);
        url.query_pairs_mut().append_pair("api-version", list.version).extend_pairs(&list.query);
        for _ in 0..AZURE_MAX_PAGES {
            let page: Page = self.read(list.operation, self.get(url).await).await?;
            for row in page.value {
                match serde_json::from_value(row) {
                    Ok(row) => take(row, skipped),
                    Err(_) => skip(skipped, "a row that cannot be read"),
                }
            }
            let Some(next) = page.next.filter(|link| !link.is_empty()) else { return Ok(()) };
            url = Url::parse(&next).map_err(|e| {
                super::error(ErrorClass::Transient, list.operation, format!("the next page has no address: {e}"))
            })?;
        }
        let message = format!("the list did not end after {AZURE_MAX_PAGES} pages");
        Err(super::error(ErrorClass::Transient, list.operation, message))
    }

    /// The document in an answer, or what is wrong.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        operation: &str,
        answer: azure_core::Result<Response>,
    ) -> Result<T> {
        let (_, read) = self.body(operation, answer).await?;
        serde_json::from_slice(&read)
            .map_err(|e| super::error(ErrorClass::Transient, operation, format!("the answer cannot be read: {e}")))
    }

    /// How a request without an answer of its own was accepted.
    pub(super) async fn accepted(&self, operation: &str, answer: azure_core::Result<Response>) -> Result<StatusCode> {
        Ok(self.body(operation, answer).await?.0)
    }

    /// What came with a success; the transport makes an error of everything else.
    async fn body(&self, operation: &str, answer: azure_core::Result<Response>) -> Result<(StatusCode, Vec<u8>)> {
        let classify = |e: &azure_core::Error| errors::classify(&self.id, operation, e);
        let (status, _, body) = answer.map_err(|e| classify(&e))?.deconstruct();
        let read = body.collect().await.map_err(|e| classify(&e))?;
        Ok((status, read.to_vec()))
    }

    /// The transport lets it go nowhere but to the configured address.
    async fn get(&self, url: Url) -> azure_core::Result<Response> {
        let mut request = Request::new(url, Method::Get);
        let token = self.credential.get_token(&[]).await?;
        request.insert_header(AUTHORIZATION, format!("Bearer {}", token.token.secret()));
        self.transport.execute_request(&request).await
    }
}
