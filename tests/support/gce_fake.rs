//! A Compute Engine of our own on loopback, with the semantics that matter: a request id that comes again is the same
//! request, a name is taken once, what was accepted may still be refused by the operation, deletion takes a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

#[derive(Default)]
pub(crate) struct Server {
    /// By zone and name: the body, how often it was looked at, whether it is being deleted.
    pub(crate) machines: BTreeMap<(String, String), (Value, u32, bool)>,
    /// Answers by request id.
    requests: BTreeMap<String, Value>,
    /// Every insert that came, with its body.
    pub(crate) inserts: Vec<Value>,
    /// The next insert is refused so: status, reason.
    pub(crate) refuse: Option<(u16, &'static str)>,
    /// The next insert is accepted, and its operation then fails with this code.
    pub(crate) fail_later: Option<&'static str>,
    /// The next insert has its effect, and is then answered with 503.
    pub(crate) lose_answer: bool,
    /// Operations are not done at once; this is how they ended.
    pending: BTreeMap<String, Value>,
    /// `wait` answers with 503.
    pub(crate) wait_fails: bool,
}

pub(crate) type Shared = Arc<Mutex<Server>>;

#[derive(serde::Deserialize)]
struct Asked {
    #[serde(rename = "requestId")]
    request_id: Option<String>,
}

fn refusal(status: u16, reason: &str) -> Response {
    let body =
        json!({"error": {"code": status, "message": format!("refused: {reason}"), "errors": [{"reason": reason}]}});
    (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

fn operation(n: usize, error: Option<&str>) -> Value {
    let mut operation = json!({"name": format!("operation-{n}"), "id": n.to_string(), "status": "DONE"});
    if let Some(code) = error {
        operation["error"] = json!({"errors": [{"code": code, "message": "there is none left"}]});
        operation["httpErrorStatusCode"] = json!(503);
    }
    operation
}

async fn insert(
    State(server): State<Shared>,
    Path(zone): Path<String>,
    Query(asked): Query<Asked>,
    Json(body): Json<Value>,
) -> Response {
    let mut server = server.lock().unwrap();
    let id = asked.request_id.filter(|id| !id.is_empty()).unwrap();
    server.inserts.push(body.clone());
    if let Some((status, reason)) = server.refuse.take() {
        return refusal(status, reason);
    }
    if let Some(known) = server.requests.get(&id) {
        return Json(known.clone()).into_response();
    }
    let name = body["name"].as_str().unwrap().to_owned();
    if server.machines.contains_key(&(zone.clone(), name.clone())) {
        return refusal(409, "alreadyExists");
    }
    let error = server.fail_later.take();
    if error.is_none() {
        server.machines.insert((zone, name), (body, 0, false));
    }
    let done = operation(server.inserts.len(), error);
    let mut running = done.clone();
    running["status"] = json!("RUNNING");
    running.as_object_mut().unwrap().remove("error");
    server.pending.insert(done["name"].as_str().unwrap().to_owned(), done.clone());
    server.requests.insert(id, done);
    if std::mem::take(&mut server.lose_answer) {
        return refusal(503, "backendError");
    }
    Json(running).into_response()
}

async fn wait(State(server): State<Shared>, Path((_, name)): Path<(String, String)>) -> Response {
    let server = server.lock().unwrap();
    if server.wait_fails {
        return refusal(503, "backendError");
    }
    server.pending.get(&name).map_or_else(|| refusal(404, "notFound"), |done| Json(done.clone()).into_response())
}

fn shown(zone: &str, (body, looks, deleting): &(Value, u32, bool)) -> Value {
    let mut body = body.clone();
    body["zone"] = json!(format!("https://compute/zones/{zone}"));
    body["status"] = json!(if *deleting {
        "STOPPING"
    } else if *looks > 1 {
        "RUNNING"
    } else {
        "PROVISIONING"
    });
    body["creationTimestamp"] = json!("2026-11-01T00:00:00.000-00:00");
    body
}

async fn one(State(server): State<Shared>, Path((zone, name)): Path<(String, String)>) -> Response {
    let mut server = server.lock().unwrap();
    let key = (zone.clone(), name);
    if server.machines.get(&key).is_some_and(|m| m.2) {
        server.machines.remove(&key);
    }
    match server.machines.get_mut(&key) {
        Some(machine) => {
            machine.1 += 1;
            Json(shown(&zone, machine)).into_response()
        }
        None => refusal(404, "notFound"),
    }
}

async fn delete(State(server): State<Shared>, Path(key): Path<(String, String)>) -> Response {
    match server.lock().unwrap().machines.get_mut(&key) {
        Some(machine) => {
            machine.2 = true;
            Json(operation(7, None)).into_response()
        }
        None => refusal(404, "notFound"),
    }
}

async fn all(State(server): State<Shared>) -> Response {
    let server = server.lock().unwrap();
    let mut items = serde_json::Map::new();
    for ((zone, _), machine) in &server.machines {
        let scope = items.entry(format!("zones/{zone}")).or_insert_with(|| json!({"instances": []}));
        scope["instances"].as_array_mut().unwrap().push(shown(zone, machine));
    }
    Json(json!({ "items": items })).into_response()
}

/// Start one; gives its address.
pub(crate) async fn serve(server: Shared) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let zone = "/compute/v1/projects/p/zones/{zone}";
    let app = Router::new()
        .route(&format!("{zone}/instances"), post(insert))
        .route(&format!("{zone}/instances/{{name}}"), get(one).delete(delete))
        .route(&format!("{zone}/operations/{{name}}/wait"), post(wait))
        .route("/compute/v1/projects/p/aggregated/instances", get(all))
        .with_state(server);
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}
