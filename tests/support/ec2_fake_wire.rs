//! EC2's XML, as far as the fake speaks it.

use axum::body::Body;
use axum::http::{Response, StatusCode};

use super::ec2_fake::{Machine, Offered, Params, zone_id, zone_name};

const NAMESPACE: &str = "http://ec2.amazonaws.com/doc/2016-11-15";
pub(crate) const REQUEST_ID: &str = "59dbff89-35bd-4eac-99ed-be587EXAMPLE";

/// Text as XML carries it; control characters as references where XML has any for them.
pub(crate) fn xml(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
        out
    })
}

pub(crate) fn raw(status: StatusCode, body: String) -> Response<Body> {
    Response::builder()
        .status(status)
        .header("content-type", "text/xml;charset=UTF-8")
        .body(Body::from(body))
        .expect("a response")
}

/// EC2's error body; the request's id stands only in it, as older endpoints do.
pub(crate) fn error(status: u16, code: &str, message: &str, retry_after: Option<&str>) -> Response<Body> {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{}</Code><Message>{}</Message></Error></Errors><RequestID>{REQUEST_ID}</RequestID></Response>",
        xml(code),
        xml(message)
    );
    let mut response = raw(StatusCode::from_u16(status).expect("a status"), body);
    if let Some(seconds) = retry_after {
        response.headers_mut().insert("retry-after", seconds.parse().expect("a header's value"));
    }
    response
}

/// An error as the security token service writes it.
pub(crate) fn sts_error(status: u16, code: &str, message: &str) -> Response<Body> {
    let body = format!(
        "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type><Code>{}</Code><Message>{}</Message></Error><RequestId>{REQUEST_ID}</RequestId></ErrorResponse>",
        xml(code),
        xml(message)
    );
    raw(StatusCode::from_u16(status).expect("a status"), body)
}

fn envelope(action: &str, inner: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{action}Response xmlns=\"{NAMESPACE}\"><requestId>{REQUEST_ID}</requestId>{inner}</{action}Response>"
    )
}

fn items(name: &str, rows: impl IntoIterator<Item = String>) -> String {
    let rows = rows.into_iter().fold(String::new(), |all, row| all + "<item>" + &row + "</item>");
    format!("<{name}>{rows}</{name}>")
}

pub(crate) fn caller() -> String {
    "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><GetCallerIdentityResult>\
     <Arn>arn:aws:iam::123456789012:user/deck</Arn><UserId>AIDATEST</UserId><Account>123456789012</Account>\
     </GetCallerIdentityResult><ResponseMetadata><RequestId>01234567-89ab-cdef-0123-456789abcdef</RequestId>\
     </ResponseMetadata></GetCallerIdentityResponse>"
        .to_owned()
}

pub(crate) fn regions(names: &[String]) -> String {
    let mut rows: Vec<String> = names
        .iter()
        .map(|n| format!("<regionName>{n}</regionName><optInStatus>opt-in-not-required</optInStatus>"))
        .collect();
    rows.push("<regionName>me-south-1</regionName><optInStatus>not-opted-in</optInStatus>".into());
    envelope("DescribeRegions", &items("regionInfo", rows))
}

pub(crate) fn zones(region: &str) -> String {
    let rows = (0..3).map(|n| {
        let state = if n == 1 { "constrained" } else { "available" };
        format!(
            "<zoneName>{}</zoneName><zoneId>{}</zoneId><zoneState>{state}</zoneState><regionName>{region}</regionName><zoneType>availability-zone</zoneType>",
            zone_name(region, n),
            zone_id(region, n)
        )
    });
    envelope("DescribeAvailabilityZones", &items("availabilityZoneInfo", rows))
}

/// The account's name for one of the fake's zone ids, which may be a stranger's.
fn name_of(region: &str, id: &str) -> String {
    (0..3).find(|n| zone_id(region, *n) == id).map_or_else(|| format!("{region}-far-1a"), |n| zone_name(region, n))
}

pub(crate) fn offerings(region: &str, offered: &[&Offered], by_id: bool) -> String {
    let rows = offered.iter().flat_map(|o| {
        o.zones.iter().map(move |(id, _)| {
            let (how, place) =
                if by_id { ("availability-zone-id", id.clone()) } else { ("availability-zone", name_of(region, id)) };
            format!(
                "<instanceType>{}</instanceType><locationType>{how}</locationType><location>{}</location>",
                xml(&o.kind),
                xml(&place)
            )
        })
    });
    envelope("DescribeInstanceTypeOfferings", &items("instanceTypeOfferingSet", rows))
}

pub(crate) fn types(offered: &[&Offered]) -> String {
    let rows = offered.iter().map(|o| {
        let gpus = items(
            "gpus",
            o.gpus.iter().map(|(name, count, mib)| {
                format!(
                    "<name>{}</name><manufacturer>NVIDIA</manufacturer><count>{count}</count><memoryInfo><sizeInMiB>{mib}</sizeInMiB></memoryInfo>",
                    xml(name)
                )
            }),
        );
        let gpus = if o.gpus.is_empty() { String::new() } else { format!("<gpuInfo>{gpus}</gpuInfo>") };
        format!(
            "<instanceType>{}</instanceType>{}<vCpuInfo><defaultVCpus>{}</defaultVCpus></vCpuInfo><memoryInfo><sizeInMiB>2097152</sizeInMiB></memoryInfo><networkInfo><efaSupported>true</efaSupported></networkInfo>{gpus}",
            xml(&o.kind),
            items("supportedUsageClasses", o.classes.iter().cloned()),
            o.vcpus
        )
    });
    envelope("DescribeInstanceTypes", &items("instanceTypeSet", rows))
}

pub(crate) fn spot_prices(region: &str, offered: &[&Offered]) -> String {
    let rows = offered.iter().flat_map(|o| {
        o.zones.iter().filter_map(move |(id, price)| {
            let price = price.as_ref()?;
            Some(format!(
                "<instanceType>{}</instanceType><productDescription>Linux/UNIX</productDescription><spotPrice>{}</spotPrice><timestamp>2026-11-30T22:00:00.000Z</timestamp><availabilityZone>{}</availabilityZone>",
                xml(&o.kind),
                xml(price),
                name_of(region, id)
            ))
        })
    });
    envelope("DescribeSpotPriceHistory", &format!("{}<nextToken></nextToken>", items("spotPriceHistorySet", rows)))
}

pub(crate) fn images(images: &[(String, String, String)], patterns: &[String], id: Option<&String>) -> String {
    let rows = images
        .iter()
        .filter(|(own, name, _)| match id {
            Some(wanted) => wanted == own,
            None => patterns.iter().any(|p| glob(p, name)),
        })
        .map(|(own, name, date)| {
            format!(
                "<imageId>{own}</imageId><name>{}</name><creationDate>{date}</creationDate><imageState>available</imageState><rootDeviceName>/dev/sda1</rootDeviceName><blockDeviceMapping><item><deviceName>/dev/sda1</deviceName><ebs><volumeSize>75</volumeSize><deleteOnTermination>false</deleteOnTermination></ebs></item></blockDeviceMapping>",
                xml(name)
            )
        });
    envelope("DescribeImages", &items("imagesSet", rows))
}

fn machine(m: &Machine) -> String {
    let tags = items("tagSet", m.tags.iter().map(|(k, v)| format!("<key>{}</key><value>{}</value>", xml(k), xml(v))));
    let lifecycle = if m.spot {
        format!(
            "<instanceLifecycle>spot</instanceLifecycle><spotInstanceRequestId>sir-{}</spotInstanceRequestId>",
            xml(&m.id)
        )
    } else {
        String::new()
    };
    let cpus = "<cpuOptions><coreCount>96</coreCount><threadsPerCore>2</threadsPerCore></cpuOptions>";
    format!(
        "<instanceId>{}</instanceId><imageId>ami-0123456789abcdef0</imageId><instanceState><code>0</code><name>{}</name></instanceState><reason>{}</reason><instanceType>{}</instanceType><launchTime>2026-12-01T01:00:00.000Z</launchTime><placement><availabilityZone>{}</availabilityZone></placement><stateReason><code>{}</code><message>{}</message></stateReason><clientToken>{}</clientToken>{cpus}{lifecycle}{tags}",
        m.id,
        xml(&m.state),
        xml(&m.transition),
        xml(&m.kind),
        m.zone,
        xml(&m.reason.0),
        xml(&m.reason.1),
        xml(&m.token)
    )
}

pub(crate) fn run(m: &Machine) -> String {
    envelope("RunInstances", &format!("<reservationId>r-1</reservationId>{}", items("instancesSet", [machine(m)])))
}

pub(crate) fn describe(page: &[Machine], next: Option<&str>) -> String {
    let rows =
        page.iter().map(|m| format!("<reservationId>r-1</reservationId>{}", items("instancesSet", [machine(m)])));
    let next = next.map_or_else(String::new, |t| format!("<nextToken>{t}</nextToken>"));
    envelope("DescribeInstances", &format!("{}{next}", items("reservationSet", rows)))
}

/// The requests behind spot machines: the machine's id, and the code of the request's status.
pub(crate) fn spot_requests(rows: &[(String, String)]) -> String {
    let rows = rows.iter().map(|(id, code)| {
        format!(
            "<spotInstanceRequestId>sir-{0}</spotInstanceRequestId><instanceId>{0}</instanceId><state>active</state><status><code>{1}</code><updateTime>2026-12-01T02:00:00.000Z</updateTime><message>m</message></status>",
            xml(id),
            xml(code)
        )
    });
    envelope("DescribeSpotInstanceRequests", &items("spotInstanceRequestSet", rows))
}

pub(crate) fn terminate(id: &str, before: &str, now: &str) -> String {
    let row = format!(
        "<instanceId>{id}</instanceId><currentState><code>32</code><name>{now}</name></currentState><previousState><code>16</code><name>{before}</name></previousState>"
    );
    envelope("TerminateInstances", &items("instancesSet", [row]))
}

/// The tags that a request puts on one kind of resource.
pub(crate) fn tags_of(params: &Params, resource: &str) -> Vec<(String, String)> {
    (1..)
        .map_while(|n| {
            let kind = params.get(&format!("TagSpecification.{n}.ResourceType"))?;
            let tags: Vec<(String, String)> = (1..)
                .map_while(|t| {
                    let at = |what: &str| params.get(&format!("TagSpecification.{n}.Tag.{t}.{what}")).cloned();
                    Some((at("Key")?, at("Value").unwrap_or_default()))
                })
                .collect();
            Some(if kind == resource { tags } else { Vec::new() })
        })
        .flatten()
        .collect()
}

/// EC2's wildcards: `*`, `?`, and `\` before what is meant as it is.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    fn fits(p: &[char], t: &[char]) -> bool {
        match p {
            [] => t.is_empty(),
            ['*', rest @ ..] => (0..=t.len()).any(|n| fits(rest, &t[n..])),
            ['?', rest @ ..] => !t.is_empty() && fits(rest, &t[1..]),
            ['\\', c, rest @ ..] | [c, rest @ ..] => t.first() == Some(c) && fits(rest, &t[1..]),
        }
    }
    fits(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>())
}
