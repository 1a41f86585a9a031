//! A small EC2 of our own that speaks the real wire format (form in, XML out) and has the semantics that matter for
//! money: client tokens are idempotent by region, a token with other parameters is refused, a machine that was ended
//! keeps its token, capacity can be missing at once or later, listings can lag, answers can be lost after the effect.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{Form, FromRequest as _, Request, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::post;

use super::ec2_fake_wire as wire;

/// The parameters of a request, as they came.
pub(crate) type Params = BTreeMap<String, String>;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) action: String,
    pub(crate) region: String,
    pub(crate) params: Params,
}

/// What goes wrong with a call.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// Refused before anything is done.
    Refuse { status: u16, code: String, message: String, retry_after: Option<String> },
    /// Done, and then answered with this status and an empty body.
    LostAfterEffect { status: u16 },
    /// Done, and the body breaks off after so many percent of it.
    Truncated(usize),
    /// Done, and the body is not EC2's.
    Garbage,
    /// Never answered.
    Hang,
    /// Answered without end.
    Endless,
}

impl Fault {
    pub(crate) fn refuse(status: u16, code: &str, message: &str) -> Self {
        Self::Refuse { status, code: code.into(), message: message.into(), retry_after: None }
    }
}

/// When a fault strikes.
#[derive(Debug, Clone)]
struct Rule {
    action: String,
    region: Option<String>,
    fault: Fault,
    times: u32,
}

/// A machine of the fake.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) id: String,
    pub(crate) region: String,
    pub(crate) zone: String,
    pub(crate) kind: String,
    pub(crate) spot: bool,
    pub(crate) token: String,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) state: String,
    pub(crate) reason: (String, String),
    pub(crate) transition: String,
    /// Listings that do not show it yet.
    pub(crate) hidden_for: u32,
    /// The status of the spot request behind it.
    pub(crate) request: String,
    /// Where the next look finds it to be.
    pub(crate) next: Option<(String, (String, String))>,
}

/// A type that is offered, in which zones (by id), and its spot price there as text.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    pub(crate) kind: String,
    pub(crate) gpus: Vec<(String, i32, i32)>,
    pub(crate) vcpus: i32,
    pub(crate) zones: Vec<(String, Option<String>)>,
    pub(crate) classes: Vec<String>,
}

/// All that the fake knows.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) regions: Vec<String>,
    pub(crate) offered: Vec<Offered>,
    pub(crate) machines: Vec<Machine>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) images: Vec<(String, String, String)>,
    /// Most rows of a page.
    pub(crate) page: usize,
    /// Each answer names a next page.
    pub(crate) endless: bool,
    /// The filter `client-token` is refused.
    pub(crate) no_token_filter: bool,
    /// What the service of quotas answers; `None`: there is none.
    pub(crate) quotas: Option<String>,
    /// Types are not listed by zone id.
    pub(crate) no_zone_ids: bool,
    /// New machines are hidden from so many listings.
    pub(crate) lag: u32,
    /// New machines die with this reason right after they were accepted.
    pub(crate) dies: Option<(String, String)>,
    /// Nothing left of a type in a zone (by name).
    pub(crate) sold_out: Vec<(String, String)>,
    rules: Vec<Rule>,
    tokens: HashMap<(String, String), (Params, String)>,
    made: u32,
}

/// The running fake.
pub(crate) struct Fake {
    pub(crate) url: String,
    world: Arc<Mutex<World>>,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Fake {
    /// Started on a free port of the loopback, with these regions, each with three zones.
    pub(crate) async fn start(regions: &[&str]) -> Self {
        let world = Arc::new(Mutex::new(World {
            regions: regions.iter().map(ToString::to_string).collect(),
            page: 1000,
            images: vec![("ami-0123456789abcdef0".into(), "test image".into(), "2026-01-01T00:00:00.000Z".into())],
            ..World::default()
        }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port of the loopback");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let router = Router::new().route("/", post(answer)).with_state(Arc::clone(&world));
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("the fake serves");
        });
        Self { url, world, server }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next calls of this action fail so.
    pub(crate) fn fail(&self, action: &str, region: Option<&str>, times: u32, fault: Fault) {
        let rule = Rule { action: action.into(), region: region.map(Into::into), fault, times };
        self.world().rules.push(rule);
    }

    /// The requests of an action so far.
    pub(crate) fn calls(&self, action: &str) -> Vec<Seen> {
        self.world().seen.iter().filter(|s| s.action == action).cloned().collect()
    }

    /// A p5.48xlarge with a spot price in the first two zones of every region.
    pub(crate) fn offer_p5(&self) {
        let mut world = self.world();
        for region in world.regions.clone() {
            let zone = |n: usize, price: Option<&str>| (zone_id(&region, n), price.map(str::to_owned));
            let offered = Offered {
                kind: "p5.48xlarge".into(),
                gpus: vec![("H100".into(), 8, 81_920)],
                vcpus: 192,
                zones: vec![zone(0, Some("24.500000")), zone(1, Some("31.2"))],
                classes: vec!["on-demand".into(), "spot".into()],
            };
            world.offered.push(offered);
        }
    }

    /// Set a machine's state and reason.
    pub(crate) fn set_state(&self, id: &str, state: &str, code: &str, message: &str) {
        let mut world = self.world();
        let machine = world.machines.iter_mut().find(|m| m.id == id).expect("the machine is there");
        machine.state = state.into();
        machine.reason = (code.into(), message.into());
        machine.next = None;
    }
}

/// The letters of this account's zones stand in another order than the ids.
pub(crate) fn zone_name(region: &str, n: usize) -> String {
    format!("{region}{}", ["b", "c", "a"][n % 3])
}

/// The id of a region's zone, such as `use1-az1`.
pub(crate) fn zone_id(region: &str, n: usize) -> String {
    let parts: Vec<&str> = region.split('-').collect();
    let direction = parts.get(1).and_then(|p| p.chars().next()).unwrap_or('x');
    format!("{}{direction}{}-az{}", parts[0], parts.last().expect("a number"), n + 1)
}

async fn answer(State(world): State<Arc<Mutex<World>>>, headers: HeaderMap, request: Request) -> Response<Body> {
    if let Some(target) = headers.get("x-amz-target").and_then(|t| t.to_str().ok()) {
        // Another protocol, and another service at the same address.
        let world = world.lock().unwrap_or_else(PoisonError::into_inner);
        return match &world.quotas {
            Some(quotas) if target == "ServiceQuotasV20190624.ListServiceQuotas" => {
                wire::raw(StatusCode::OK, quotas.clone())
            }
            _ => wire::raw(StatusCode::BAD_REQUEST, "{\"__type\":\"UnknownOperationException\"}".into()),
        };
    }
    let Ok(Form(form)) = Form::<Vec<(String, String)>>::from_request(request, &()).await else {
        return wire::error(400, "MalformedQueryString", "not a form", None);
    };
    let params: Params = form.into_iter().collect();
    let action = params.get("Action").cloned().unwrap_or_default();
    let Some(region) = signed_region(&headers) else {
        return wire::error(401, "MissingAuthenticationToken", "the request is not signed", None);
    };
    let (fault, reply) = {
        let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
        world.seen.push(Seen { action: action.clone(), region: region.clone(), params: params.clone() });
        let fault = world.fault(&action, &region);
        if let Some(Fault::Refuse { status, code, message, .. }) = &fault
            && action == "GetCallerIdentity"
            && code != "InvalidAction"
        {
            return wire::sts_error(*status, code, message);
        }
        if let Some(Fault::Refuse { status, code, message, retry_after }) = &fault {
            return wire::error(*status, code, message, retry_after.as_deref());
        }
        if matches!(fault, Some(Fault::Hang)) {
            (fault, None)
        } else {
            (fault, Some(world.act(&action, &region, &params)))
        }
    };
    match (fault, reply) {
        (Some(Fault::LostAfterEffect { status }), _) => {
            wire::raw(StatusCode::from_u16(status).expect("a status"), String::new())
        }
        (Some(Fault::Truncated(percent)), Some(Ok(body))) => {
            wire::raw(StatusCode::OK, body.chars().take(body.len() * percent / 100).collect())
        }
        (Some(Fault::Endless), _) => {
            let piece = || Ok::<_, std::convert::Infallible>(vec![b'<'; 1 << 16]);
            Response::new(Body::from_stream(futures_util::stream::repeat_with(piece)))
        }
        (Some(Fault::Garbage), _) => wire::raw(StatusCode::OK, "<html>a proxy's login page</html>".into()),
        (Some(Fault::Hang), _) | (_, None) => {
            // The client goes away first.
            std::future::pending().await
        }
        (_, Some(Ok(body))) => wire::raw(StatusCode::OK, body),
        (_, Some(Err((status, code, message)))) => wire::error(status, code, &message, None),
    }
}

/// The region that a request is signed for; it is not in the body.
fn signed_region(headers: &HeaderMap) -> Option<String> {
    let header = headers.get("authorization")?.to_str().ok()?;
    let scope = header.strip_prefix("AWS4-HMAC-SHA256 ")?.split("Credential=").nth(1)?;
    scope.split('/').nth(2).map(str::to_owned)
}

type Refusal = (u16, &'static str, String);

impl World {
    fn fault(&mut self, action: &str, region: &str) -> Option<Fault> {
        let rule = self
            .rules
            .iter_mut()
            .find(|r| r.times > 0 && r.action == action && r.region.as_deref().is_none_or(|wanted| wanted == region))?;
        rule.times -= 1;
        Some(rule.fault.clone())
    }

    fn act(&mut self, action: &str, region: &str, params: &Params) -> Result<String, Refusal> {
        match action {
            "GetCallerIdentity" => Ok(wire::caller()),
            "DescribeRegions" => Ok(wire::regions(&self.regions)),
            _ if !self.regions.iter().any(|r| r == region) => {
                Err((401, "AuthFailure", format!("region {region} is not enabled")))
            }
            "DescribeAvailabilityZones" => Ok(wire::zones(region)),
            "DescribeInstanceTypeOfferings" => self.offerings(region, params),
            "DescribeInstanceTypes" => {
                let wanted = filter_values(params, "instance-type");
                let here: Vec<&Offered> =
                    self.offered_in(region).into_iter().filter(|o| wanted.contains(&o.kind)).collect();
                Ok(wire::types(&here))
            }
            "DescribeSpotPriceHistory" => Ok(wire::spot_prices(region, &self.offered_in(region))),
            "DescribeImages" => Ok(wire::images(&self.images, &filter_values(params, "name"), params.get("ImageId.1"))),
            "RunInstances" => self.run(region, params),
            "DescribeInstances" => self.describe(region, params),
            "DescribeSpotInstanceRequests" => {
                let wanted = filter_values(params, "instance-id");
                let of = |m: &&Machine| m.region == region && m.spot && wanted.contains(&m.id);
                let rows: Vec<(String, String)> =
                    self.machines.iter().filter(of).map(|m| (m.id.clone(), m.request.clone())).collect();
                Ok(wire::spot_requests(&rows))
            }
            "TerminateInstances" => self.terminate(region, params),
            other => Err((400, "InvalidAction", format!("The action {other} is not valid for this web service."))),
        }
    }

    fn offered_in(&self, region: &str) -> Vec<&Offered> {
        let first = zone_id(region, 0);
        let prefix = first.trim_end_matches('1');
        self.offered.iter().filter(|o| o.zones.iter().any(|(id, _)| id.starts_with(prefix))).collect()
    }

    fn offerings(&self, region: &str, params: &Params) -> Result<String, Refusal> {
        let by_id = params.get("LocationType").map(String::as_str) == Some("availability-zone-id");
        if by_id && self.no_zone_ids {
            return Err((400, "InvalidParameterValue", "locationType 'availability-zone-id' is not supported".into()));
        }
        Ok(wire::offerings(region, &self.offered_in(region), by_id))
    }

    fn run(&mut self, region: &str, params: &Params) -> Result<String, Refusal> {
        let get = |key: &str| params.get(key).cloned().unwrap_or_default();
        let token = get("ClientToken");
        if token.is_empty() {
            return Err((400, "MissingParameter", "the fake insists on a ClientToken".into()));
        }
        if (get("MinCount"), get("MaxCount")) != ("1".into(), "1".into()) {
            return Err((400, "InvalidParameterCombination", "the fake makes one machine a call".into()));
        }
        if let Some((before, id)) = self.tokens.get(&(region.to_owned(), token.clone())) {
            if before != params {
                return Err((400, "IdempotentParameterMismatch", "Client token was used with other parameters".into()));
            }
            let known = self.machines.iter().find(|m| &m.id == id);
            return match known {
                Some(machine) if machine.state != "terminated" => Ok(wire::run(machine)),
                _ => Err((
                    400,
                    "IdempotentInstanceTerminated",
                    "The request is idempotent to a launch of an instance that is terminated".into(),
                )),
            };
        }
        let zone = match get("Placement.AvailabilityZone") {
            none if none.is_empty() => zone_name(region, 0),
            named if (0..3).any(|n| zone_name(region, n) == named) => named,
            other => return Err((400, "InvalidParameterValue", format!("Invalid availability zone: [{other}]"))),
        };
        let kind = get("InstanceType");
        if self.sold_out.contains(&(kind.clone(), zone.clone())) {
            let message =
                format!("We currently do not have sufficient {kind} capacity in the Availability Zone ({zone}).");
            return Err((500, "InsufficientInstanceCapacity", message));
        }
        let spot = get("InstanceMarketOptions.MarketType") == "spot";
        let limit: Option<f64> = get("InstanceMarketOptions.SpotOptions.MaxPrice").parse().ok();
        let n = (0..3).find(|n| zone_name(region, *n) == zone).unwrap_or(0);
        let price = self
            .offered_in(region)
            .into_iter()
            .find(|o| o.kind == kind)
            .and_then(|o| o.zones.iter().find(|(id, _)| *id == zone_id(region, n)))
            .and_then(|(_, price)| price.as_deref()?.parse::<f64>().ok());
        if let (true, Some(limit), Some(price)) = (spot, limit, price)
            && limit < price
        {
            let message = format!(
                "Your Spot request price of {limit} is lower than the minimum required Spot request fulfillment price of {price}."
            );
            return Err((400, "SpotMaxPriceTooLow", message));
        }
        self.made += 1;
        let machine = Machine {
            id: format!("i-{:017x}", self.made),
            region: region.into(),
            zone,
            kind,
            spot,
            token: token.clone(),
            tags: wire::tags_of(params, "instance"),
            state: "pending".into(),
            reason: (String::new(), String::new()),
            transition: String::new(),
            hidden_for: self.lag,
            request: "fulfilled".into(),
            next: Some(match &self.dies {
                Some(reason) => ("terminated".into(), reason.clone()),
                None => ("running".into(), (String::new(), String::new())),
            }),
        };
        let body = wire::run(&machine);
        self.tokens.insert((region.to_owned(), token), (params.clone(), machine.id.clone()));
        self.machines.push(machine);
        Ok(body)
    }

    fn describe(&mut self, region: &str, params: &Params) -> Result<String, Refusal> {
        let filters = filters(params);
        for (name, _) in &filters {
            let known = name.starts_with("tag:")
                || matches!(name.as_str(), "instance-id" | "instance-type" | "instance-state-name")
                || (name == "client-token" && !self.no_token_filter);
            if !known {
                return Err((400, "InvalidParameterValue", format!("The filter '{name}' is invalid")));
            }
        }
        let mut rows = Vec::new();
        for machine in self.machines.iter_mut().filter(|m| m.region == region) {
            if machine.hidden_for > 0 {
                machine.hidden_for -= 1;
                continue;
            }
            let fits = filters.iter().all(|(name, values)| {
                let own: Vec<&str> = match name.as_str() {
                    "instance-id" => vec![&machine.id],
                    "client-token" => vec![&machine.token],
                    "instance-type" => vec![&machine.kind],
                    "instance-state-name" => vec![&machine.state],
                    tag => machine
                        .tags
                        .iter()
                        .filter(|(key, _)| Some(key.as_str()) == tag.strip_prefix("tag:"))
                        .map(|(_, value)| value.as_str())
                        .collect(),
                };
                values.iter().any(|pattern| own.iter().any(|text| wire::glob(pattern, text)))
            });
            if !fits {
                continue;
            }
            if let Some((state, reason)) = machine.next.take() {
                machine.state = state;
                machine.reason = reason;
            }
            rows.push(machine.clone());
        }
        let from: usize = params.get("NextToken").and_then(|t| t.parse().ok()).unwrap_or(0);
        let page: Vec<Machine> = rows.iter().skip(from).take(self.page).cloned().collect();
        let next = (self.endless || from + page.len() < rows.len()).then(|| (from + page.len()).to_string());
        Ok(wire::describe(&page, next.as_deref()))
    }

    fn terminate(&mut self, region: &str, params: &Params) -> Result<String, Refusal> {
        let id = params.get("InstanceId.1").cloned().unwrap_or_default();
        let Some(machine) = self.machines.iter_mut().find(|m| m.id == id && m.region == region) else {
            return Err((400, "InvalidInstanceID.NotFound", format!("The instance ID '{id}' does not exist")));
        };
        let before = machine.state.clone();
        if before != "terminated" {
            machine.state = "shutting-down".into();
            machine.reason =
                ("Client.UserInitiatedShutdown".into(), "Client.UserInitiatedShutdown: User initiated shutdown".into());
            machine.transition = "User initiated (2026-12-01 01:55:02 GMT)".into();
            machine.next = Some(("terminated".into(), machine.reason.clone()));
        }
        Ok(wire::terminate(&id, &before, &machine.state))
    }
}

/// Names and values of a request's filters.
fn filters(params: &Params) -> Vec<(String, Vec<String>)> {
    (1..)
        .map_while(|n| {
            let name = params.get(&format!("Filter.{n}.Name"))?.clone();
            let values = (1..).map_while(|v| params.get(&format!("Filter.{n}.Value.{v}")).cloned()).collect();
            Some((name, values))
        })
        .collect()
}

fn filter_values(params: &Params, name: &str) -> Vec<String> {
    filters(params).into_iter().find(|(n, _)| n == name).map(|(_, values)| values).unwrap_or_default()
}
