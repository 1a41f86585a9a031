//! The one HTTP stack of the program behind the management crate, which would else bring an older one with a second TLS.
//!
//! It is also where a token could leave for a stranger: the crate follows `nextLink` wherever it points. A call to another
//! origin than the configured one is refused, and redirects are not followed.

use azure_core::error::{Error, ErrorKind};
use azure_core::headers::{HeaderName, HeaderValue, Headers};
use azure_core::{Body, HttpClient, Request, Response, StatusCode, Url};
use futures_util::stream;

use super::errors::Refused;
use crate::config::limits::{AZURE_CALL_TIMEOUT, AZURE_MAX_BODY_BYTES};

/// Calls go to one origin only.
#[derive(Debug)]
pub(super) struct Transport {
    client: reqwest::Client,
    origin: url::Origin,
}

impl Transport {
    /// For calls to this address.
    pub(super) fn to(endpoint: &Url) -> azure_core::Result<Self> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(AZURE_CALL_TIMEOUT)
            .build()
            .map_err(|e| Error::full(ErrorKind::Io, e, "the HTTP client could not be made"))?;
        Ok(Self { client, origin: endpoint.origin() })
    }
}

#[async_trait::async_trait]
impl HttpClient for Transport {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<Response> {
        if request.url().origin() != self.origin {
            let host = request.url().host_str().unwrap_or("nowhere").to_owned();
            return Err(Error::with_message(ErrorKind::Other, || {
                format!("refused to send the token to {host}, which is not the configured address")
            }));
        }
        let method = reqwest::Method::from_bytes(request.method().as_ref().as_bytes())
            .map_err(|e| Error::full(ErrorKind::Other, e, "a method that HTTP does not know"))?;
        let mut call = self.client.request(method, request.url().as_str());
        for (name, value) in request.headers().iter() {
            call = call.header(name.as_str(), value.as_str());
        }
        if let Body::Bytes(bytes) = request.body()
            && !bytes.is_empty()
        {
            call = call.body(bytes.clone());
        }
        // Without the URL: its query may hold what should not stand in a log.
        let io = |e: reqwest::Error| Error::full(ErrorKind::Io, e.without_url(), "Azure did not answer");
        let mut answer = call.send().await.map_err(io)?;
        let status = StatusCode::try_from(answer.status().as_u16())
            .map_err(|e| Error::full(ErrorKind::DataConversion, e, "a status that HTTP does not know"))?;
        let headers: std::collections::HashMap<HeaderName, HeaderValue> = answer
            .headers()
            .iter()
            .filter_map(|(name, value)| {
                Some((HeaderName::from(name.as_str().to_owned()), HeaderValue::from(value.to_str().ok()?.to_owned())))
            })
            .collect();
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(io)? {
            if body.len() + chunk.len() > AZURE_MAX_BODY_BYTES {
                return Err(Error::message(ErrorKind::DataConversion, "the answer is larger than any real one"));
            }
            body.extend_from_slice(&chunk);
        }
        if !status.is_success() {
            let text = |name: &str| answer.headers().get(name)?.to_str().ok().map(str::to_owned);
            let refused = Refused::read(u16::from(status), text, &body);
            return Err(Error::new(ErrorKind::HttpResponse { status, error_code: None }, refused));
        }
        let body = stream::once(async move { Ok(body.into()) });
        Ok(Response::new(status, Headers::from(headers), Box::pin(body)))
    }
}
