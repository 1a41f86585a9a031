//! A resource manager of our own on loopback, with the semantics that matter: a `PUT` with `If-None-Match: *` makes a
//! machine at most once, creation goes on after it was accepted and may still fail, deletion takes a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

/// A machine as the server knows it.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) body: Value,
    /// How often it was looked at: running from the second look on.
    looks: u32,
    /// Being deleted: gone at the next look.
    deleting: bool,
    /// Its creation fails with this code after it was accepted.
    fails: Option<String>,
}

#[derive(Default)]
pub(crate) struct Server {
    pub(crate) machines: BTreeMap<String, Machine>,
    pub(crate) networks: Value,
    /// Every `PUT` that came, with its body.
    pub(crate) puts: Vec<Value>,
    pub(crate) deletes: u32,
    /// The next `PUT` is refused so: status, code, text.
    pub(crate) refuse: Option<(u16, &'static str, &'static str)>,
    /// The next `PUT` has its effect, and is then answered with 500.
    pub(crate) lose_answer: bool,
    /// The next creation fails later with this code.
    pub(crate) fail_later: Option<&'static str>,
}

pub(crate) type Shared = Arc<Mutex<Server>>;

type Named = (String, String, String);

fn refusal(status: u16, code: &str, message: &str) -> Response {
    let body = json!({"error": {"code": code, "message": message}});
    let headers = [("x-ms-request-id", "request-1"), ("retry-after", "17")];
    (StatusCode::from_u16(status).unwrap(), headers, Json(body)).into_response()
}

fn shown(name: &str, machine: &Machine) -> Value {
    let mut body = machine.body.clone();
    body["id"] = json!(format!("/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/{name}"));
    body["name"] = json!(name);
    let (state, statuses) = match (&machine.fails, machine.deleting, machine.looks) {
        (_, true, _) => ("Deleting", json!([])),
        (Some(code), _, 2..) => {
            ("Failed", json!([{"code": format!("ProvisioningState/failed/{code}"), "message": "there is none left"}]))
        }
        (None, _, 2..) => ("Succeeded", json!([{"code": "PowerState/running"}])),
        _ => ("Creating", json!([])),
    };
    body["properties"]["provisioningState"] = json!(state);
    body["properties"]["instanceView"] = json!({ "statuses": statuses });
    body["properties"]["timeCreated"] = json!("2026-11-01T00:00:00Z");
    // The server keeps secrets to itself.
    if let Some(system) = body["properties"]["osProfile"].as_object_mut() {
        system.remove("customData");
    }
    body
}

async fn put(
    State(server): State<Shared>,
    Path((_, _, name)): Path<Named>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    assert_eq!(headers["authorization"], "Bearer canary-token");
    let mut server = server.lock().unwrap();
    server.puts.push(body.clone());
    if let Some((status, code, message)) = server.refuse.take() {
        return refusal(status, code, message);
    }
    assert_eq!(headers["if-none-match"], "*", "a PUT without it would change what is there");
    if server.machines.contains_key(&name) {
        return refusal(412, "PreconditionFailed", "the resource exists");
    }
    let fails = server.fail_later.take().map(str::to_owned);
    let machine = Machine { body, looks: 0, deleting: false, fails };
    let answer = shown(&name, &machine);
    server.machines.insert(name, machine);
    if std::mem::take(&mut server.lose_answer) {
        return refusal(500, "InternalServerError", "lost");
    }
    (StatusCode::CREATED, Json(answer)).into_response()
}

async fn one(State(server): State<Shared>, Path((_, _, name)): Path<Named>) -> Response {
    let mut server = server.lock().unwrap();
    if server.machines.get(&name).is_some_and(|m| m.deleting) {
        server.machines.remove(&name);
    }
    match server.machines.get_mut(&name) {
        Some(machine) => {
            machine.looks += 1;
            Json(shown(&name, machine)).into_response()
        }
        None => refusal(404, "ResourceNotFound", "gone"),
    }
}

async fn delete(State(server): State<Shared>, Path((_, _, name)): Path<Named>) -> Response {
    let mut server = server.lock().unwrap();
    server.deletes += 1;
    match server.machines.get_mut(&name) {
        Some(machine) => {
            machine.deleting = true;
            StatusCode::ACCEPTED.into_response()
        }
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

async fn all(State(server): State<Shared>, Query(query): Query<BTreeMap<String, String>>) -> Response {
    let server = server.lock().unwrap();
    let mut machines: Vec<Value> = server.machines.iter().map(|(name, machine)| shown(name, machine)).collect();
    for machine in &mut machines {
        // Either the tags or the state is in the list, never both.
        if query.get("statusOnly").is_some_and(|v| v == "true") {
            machine.as_object_mut().unwrap().remove("tags");
        } else {
            machine["properties"].as_object_mut().unwrap().remove("instanceView");
        }
    }
    Json(json!({ "value": machines })).into_response()
}

async fn networks(State(server): State<Shared>) -> Response {
    Json(json!({ "value": server.lock().unwrap().networks })).into_response()
}

/// Start one; gives its address.
pub(crate) async fn serve(server: Shared) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let group = "/subscriptions/{s}/resourceGroups/{g}/providers";
    let app = Router::new()
        .route(&format!("{group}/Microsoft.Compute/virtualMachines/{{name}}"), get(one).put(put).delete(delete))
        .route("/subscriptions/{s}/providers/Microsoft.Compute/virtualMachines", get(all))
        .route(&format!("{group}/Microsoft.Network/virtualNetworks"), get(networks))
        .with_state(server);
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}
