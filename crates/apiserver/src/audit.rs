//! The audit log: who did what to which object with which result, as lines of `audit.k8s.io/v1`. Requests from inside
//! this process are not logged, and values of Secrets never are, whatever the audit policy says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::request::Parts;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::authn::Identity;
use crate::authz::{Action, On};
use crate::http::{Peer, Target};
use apimachinery::error::ApiError;

mod file;
mod policy;
mod refusals;

pub use file::{AuditFile, Rotation};
pub use policy::{AuditPolicy, PolicyError};

use policy::{Level, Stage};
use refusals::Sampler;

/// What is written down, and where.
pub struct Audit {
    policy: AuditPolicy,
    file: AuditFile,
    /// Which requests of unauthenticated clients are written down.
    refusals: Sampler,
}

/// How much of a path or a user agent of an unauthenticated client is logged.
const REFUSED_TEXT_BYTES_MAX: usize = 1_024;
/// The annotation of a sampled 401: how many events were dropped before it.
const DROPPED_REFUSALS: &str = "audit.longshore.io/dropped-refusals";

/// One request on its way into the log.
pub(crate) struct Record {
    audit: Arc<Audit>,
    level: Level,
    omitted: Vec<Stage>,
    event: Value,
    request: Option<Bytes>,
    audit_annotations: AuditAnnotations,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// What the handlers of a request add to its audit event.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditAnnotations(Arc<Mutex<Noted>>);

#[derive(Debug, Clone, Default)]
struct Noted {
    annotations: BTreeMap<String, String>,
    /// The name of the object that the request creates, which no path has.
    created_name: String,
}

impl AuditAnnotations {
    fn with<Answer>(&self, work: impl FnOnce(&mut Noted) -> Answer) -> Answer {
        work(&mut self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// Records the name of the object that the request creates.
    pub fn set_created_name(&self, name: &str) {
        self.with(|noted| name.clone_into(&mut noted.created_name));
    }

    /// Adds an annotation; what is added twice is written with a comma between.
    pub fn add(&self, key: &str, value: &str) {
        self.with(|noted| noted.add(key, value));
    }
}

impl Noted {
    fn add(&mut self, key: &str, value: &str) {
        let annotation = self.annotations.entry(key.to_owned()).or_default();
        match annotation.is_empty() {
            true => annotation.push_str(value),
            false if annotation != value => *annotation = format!("{annotation}, {value}"),
            false => {}
        }
    }
}

/// What never has its bodies written down: they hold secrets.
fn is_secret(action: &Action<'_>) -> bool {
    match &action.on {
        On::Path(_) => false,
        On::Object(object) => matches!(
            (object.group, object.resource, object.subresource),
            ("", "secrets", _)
                | ("", "serviceaccounts", "token")
                | ("authentication.k8s.io", "tokenreviews", _)
                | ("work.karmada.io", "works", _)
        ),
    }
}

impl Audit {
    /// Writes down what the policy says, into the file.
    pub fn new(policy: AuditPolicy, file: AuditFile) -> Self {
        Self { policy, file, refusals: Sampler::default() }
    }

    /// Begins the record of a request; none if nothing is to be written about it.
    pub(crate) fn begin(
        self: &Arc<Self>,
        id: String,
        parts: &Parts,
        identity: &Identity,
        action: &Action<'_>,
        target: &Target,
        now: &Arc<dyn Fn() -> Timestamp + Send + Sync>,
    ) -> Option<Record> {
        let (mut level, omitted) = self.policy.level(identity, action);
        if is_secret(action) {
            level = level.min(Level::Metadata);
        }
        if level == Level::None || identity.is_internal {
            return None;
        }
        let mut event = new_event(level, id, parts, identity, action, target);
        event["requestReceivedTimestamp"] = time(now()).into();
        let (audit_annotations, now) = (AuditAnnotations::default(), now.clone());
        let record =
            Record { audit: self.clone(), level, omitted, event, request: None, audit_annotations, now };
        record.write(Stage::RequestReceived, Value::Null);
        Some(record)
    }

    /// Logs a request that could not be authenticated. A flood of those is sampled: the event says how many were
    /// dropped before it.
    pub(crate) fn refuse(
        &self,
        id: String,
        parts: &Parts,
        action: &Action<'_>,
        target: &Target,
        error: &ApiError,
        now: Timestamp,
    ) {
        let anonymous = Identity::anonymous();
        if !self.policy.records_refusal(&anonymous, action) {
            return;
        }
        let Some(dropped) = self.refusals.take(now) else { return };
        let mut event = new_event(Level::Metadata, id, parts, &anonymous, action, target);
        for key in ["requestURI", "userAgent"] {
            if let Some(long) = event[key].as_str().filter(|text| text.len() > REFUSED_TEXT_BYTES_MAX) {
                let end = long.floor_char_boundary(REFUSED_TEXT_BYTES_MAX);
                event[key] = format!("{}…", &long[..end]).into();
            }
        }
        event["stage"] = Stage::ResponseComplete.name().into();
        event["requestReceivedTimestamp"] = time(now).into();
        event["stageTimestamp"] = time(now).into();
        event["responseStatus"] = failure(error);
        if dropped > 0 {
            event["annotations"] = json!({ DROPPED_REFUSALS: dropped.to_string() });
        }
        self.file.write(&escaped(event.to_string()));
    }

    /// How many refusals were not written down because there were too many.
    pub(crate) fn dropped_refusals(&self) -> u64 {
        self.refusals.dropped_total()
    }
}

/// What is known of a request when it comes.
fn new_event(
    level: Level,
    id: String,
    parts: &Parts,
    identity: &Identity,
    action: &Action<'_>,
    target: &Target,
) -> Value {
    let asks = identity.impersonator.as_deref().unwrap_or(identity);
    let mut event = json!({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": level.name(),
        "auditID": id,
        "requestURI": parts.uri.path_and_query().map_or(parts.uri.path(), |both| both.as_str()),
        "verb": action.verb,
        "user": asks.user_info(),
    });
    if identity.impersonator.is_some() {
        event["impersonatedUser"] = identity.user_info();
    }
    if let Some(Peer(address)) = parts.extensions.get::<Peer>() {
        event["sourceIPs"] = json!([address.to_string()]);
    }
    if let Some(agent) = parts.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok()) {
        event["userAgent"] = agent.into();
    }
    if let (On::Object(_), Target::Resource(path)) = (&action.on, target) {
        event["objectRef"] = object_reference(action, &path.version);
    }
    event
}

fn failure(error: &ApiError) -> Value {
    json!({
        "metadata": {}, "status": "Failure", "message": error.message, "reason": error.reason, "code": error.code,
    })
}

/// JSON in which also those control characters are escaped that JSON allows: terminals obey some of them.
fn escaped(line: String) -> String {
    let is_obeyed =
        |character: char| character.is_control() || ('\u{2028}'..='\u{2029}').contains(&character);
    if !line.contains(is_obeyed) {
        return line;
    }
    let mut safe = String::with_capacity(line.len() + 16);
    for character in line.chars() {
        match is_obeyed(character) {
            true => safe.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => safe.push(character),
        }
    }
    safe
}

impl Record {
    /// Shares what the handlers of the request add to its event.
    pub fn follow(&mut self, annotations: &AuditAnnotations) {
        self.audit_annotations = annotations.clone();
    }

    /// Records the authorization decision and its reason.
    pub fn note_decision(&mut self, reason: Option<&str>) {
        let decision = if reason.is_some() { "allow" } else { "forbid" };
        self.event["annotations"] = json!({
            "authorization.k8s.io/decision": decision,
            "authorization.k8s.io/reason": reason.unwrap_or_default(),
        });
    }

    /// Keeps what was sent, if it is to be written down.
    pub fn note_request(&mut self, body: &Bytes) {
        if self.level >= Level::Request {
            self.request = Some(body.clone());
        }
    }

    /// Writes that an answer begins that lasts.
    pub fn started(&self, code: u16) {
        self.write(Stage::ResponseStarted, json!({ "responseStatus": { "metadata": {}, "code": code } }));
    }

    /// Writes how the request ended.
    pub fn complete(&self, code: u16, error: Option<&ApiError>, body: Option<&Bytes>) {
        let mut more = json!({ "responseStatus": { "metadata": {}, "code": code } });
        if let Some(error) = error {
            more["responseStatus"] = failure(error);
        }
        if let Some(sent) = self.request.as_ref().and_then(|body| serde_json::from_slice::<Value>(body).ok())
        {
            more["requestObject"] = sent;
        }
        if self.level >= Level::RequestResponse
            && let Some(answer) = body.and_then(|body| serde_json::from_slice::<Value>(body).ok())
        {
            more["responseObject"] = answer;
        }
        self.write(Stage::ResponseComplete, more);
    }

    fn write(&self, stage: Stage, more: Value) {
        if self.omitted.contains(&stage) {
            return;
        }
        let mut event = self.event.clone();
        let noted = self.audit_annotations.with(|noted| noted.clone());
        for (key, value) in noted.annotations {
            event["annotations"][key] = value.into();
        }
        if !noted.created_name.is_empty() && event["objectRef"]["name"].is_null() {
            event["objectRef"]["name"] = noted.created_name.into();
        }
        event["stage"] = stage.name().into();
        event["stageTimestamp"] = time((self.now)()).into();
        for (key, value) in more.as_object().into_iter().flatten() {
            event[key] = value.clone();
        }
        self.audit.file.write(&escaped(event.to_string()));
    }
}

fn time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

fn object_reference(action: &Action<'_>, version: &str) -> Value {
    let On::Object(object) = &action.on else { return Value::Null };
    let mut reference = json!({ "apiVersion": version });
    let fields = [
        ("resource", object.resource),
        ("namespace", object.namespace),
        ("name", object.name),
        ("apiGroup", object.group),
        ("subresource", object.subresource),
    ];
    for (key, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        reference[key] = value.into();
    }
    reference
}
