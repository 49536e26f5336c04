//! Sequences of writes by several managers that a real kube-apiserver 1.35 was sent, with its answers.
//! `APPLY_TRACES` names another recording to replay instead of the committed one.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::super::*;
use apimachinery::recorded::change;

const RECORDED: &str = include_str!("../../../testdata/apply.json");

/// Later than any recorded write, so that a time that should not move is seen to.
const NEVER: &str = "2099-01-01T00:00:00Z";

/// Fields that the server filled in after the merge, in elements that were new.
const DEFAULTED: [&str; 22] = [
    "clusterIP",
    "clusterIPs",
    "externalTrafficPolicy",
    "imagePullPolicy",
    "internalTrafficPolicy",
    "ipFamilies",
    "ipFamilyPolicy",
    "maxSurge",
    "maxUnavailable",
    "protocol",
    "replicas",
    "resources",
    "rollingUpdate",
    "sessionAffinity",
    "sessionAffinityConfig",
    "revisionHistoryLimit",
    "strategy",
    "targetPort",
    "terminationGracePeriodSeconds",
    "terminationMessagePath",
    "type",
    "terminationMessagePolicy",
];

/// Fields of new Services that are filled in when owners are settled already.
const ALLOCATED: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

#[test]
fn writes_leave_the_owners_that_kubernetes_left() {
    let text = match std::env::var("APPLY_TRACES") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => RECORDED.to_owned(),
    };
    let recorded: Value = serde_json::from_str(&text).unwrap();
    let mut writes = 0;
    for trace in recorded["traces"].as_array().unwrap() {
        let kind = trace["kind"].as_str().unwrap();
        let schema = Schema::from_openapi(&recorded["schemas"][kind]);
        let mut live = None;
        for operation in trace["ops"].as_array().unwrap() {
            live = Replay { kind, schema: &schema, live, operation }.check();
            writes += 1;
        }
    }
    assert!(writes > 100, "{writes}");
}

struct Replay<'a> {
    kind: &'a str,
    schema: &'a Schema,
    live: Option<Value>,
    operation: &'a Value,
}

impl Replay<'_> {
    fn check(self) -> Option<Value> {
        match (self.operation["op"].as_str().unwrap(), self.expected()) {
            ("apply", Some(expected)) => {
                let object = self.apply(&expected).unwrap_or_else(|error| panic!("{error}\n{self}"));
                self.check_object(&object, &expected);
                self.check_owners(object, &expected);
                Some(expected)
            }
            ("apply", None) => {
                let error = self.apply(&json!({})).expect_err("the server refused it");
                self.check_error(&error);
                self.live
            }
            (_, expected) => {
                let expected = expected.expect("only refused applies are recorded");
                let mut object = expected.clone();
                if self.kind == "Service" && self.live.is_none() {
                    let spec = object["spec"].as_object_mut().unwrap();
                    spec.retain(|name, _| !ALLOCATED.contains(&name.as_str()));
                }
                self.send_managed_fields(&mut object);
                track_update(self.live.as_ref(), &mut object, &self.write(&expected));
                self.check_owners(object, &expected);
                Some(expected)
            }
        }
    }

    /// What the server answered, from how it differed from what was there.
    fn expected(&self) -> Option<Value> {
        if let Some(result) = self.operation.get("result") {
            return Some(result.clone());
        }
        let mut object = self.live.clone().unwrap_or_else(|| json!({}));
        let entries = take_managed_fields(&mut object);
        change(&mut object, self.operation.get("changed")?);
        if let Some(list) = self.operation["managed"].as_array() {
            let entry = |entry: &Value| match entry.as_u64() {
                Some(place) => entries.as_ref().unwrap()[place as usize].clone(),
                None => entry.clone(),
            };
            set_managed_fields(&mut object, Some(list.iter().map(entry).collect()));
        }
        Some(object)
    }

    fn write(&self, expected: &Value) -> WriteContext<'_> {
        let text = |name: &str| self.operation[name].as_str().unwrap_or_default();
        let times = expected["metadata"]["managedFields"].as_array().into_iter().flatten();
        let newest = times.filter_map(|entry| entry["time"].as_str()).max().unwrap_or(NEVER);
        let live = self.live.as_ref().unwrap_or(&Value::Null);
        let is_noop = live["metadata"]["resourceVersion"] == expected["metadata"]["resourceVersion"];
        let now: Timestamp = if is_noop { NEVER } else { newest }.parse().unwrap();
        WriteContext {
            manager: text("manager"),
            api_version: match self.kind {
                "Deployment" => "apps/v1",
                "Widget" => "example.com/v1",
                _ => "v1",
            },
            kind: self.kind,
            subresource: text("subresource"),
            now,
            schema: self.schema,
            builtin: self.kind != "Widget",
            reset: match (self.kind, text("subresource")) {
                ("Deployment", "status") => &[&["spec"], &["metadata", "labels"]],
                (_, "status") => &[&["spec"]],
                ("ConfigMap", _) => &[],
                _ => &[&["status"]],
            },
        }
    }

    fn apply(&self, expected: &Value) -> Result<Value, ApiError> {
        let force = self.operation["force"] == true;
        server_side_apply(self.live.as_ref(), &self.operation["body"], force, &self.write(expected))
    }

    fn send_managed_fields(&self, object: &mut Value) {
        let sent = match self.operation["sent"].as_str() {
            Some("none") => None,
            Some("[]") => Some(json!([])),
            Some("[{}]") => Some(json!([{}])),
            _ => self.live.as_ref().and_then(|live| live["metadata"].get("managedFields").cloned()),
        };
        set_managed_fields(object, sent);
    }

    fn check_owners(&self, mut object: Value, expected: &Value) {
        let list = take_managed_fields(&mut object);
        let mut stored = expected.clone();
        set_managed_fields(&mut stored, list);
        if let Some(live) = &self.live {
            keep_times_of_noop(live, &mut stored);
        }
        let list = stored["metadata"]["managedFields"].clone();
        assert_eq!(pretty(&list), pretty(&expected["metadata"]["managedFields"]), "{self}");
    }

    fn check_object(&self, object: &Value, expected: &Value) {
        let (mut object, mut expected) = (object.clone(), expected.clone());
        for object in [&mut object, &mut expected] {
            let metadata = object["metadata"].as_object_mut().unwrap();
            let server = ["managedFields", "namespace", "uid", "resourceVersion", "creationTimestamp"];
            metadata.retain(|name, _| !server.contains(&name.as_str()) && name != "generation");
            if self.operation["subresource"] != "status" {
                object.as_object_mut().unwrap().remove("status");
            }
        }
        for object in [&mut object, &mut expected] {
            object["metadata"] = stored(&object["metadata"]);
        }
        if self.kind == "Widget" {
            fill_defaults(&mut object, &expected, &|name| name == "protocol");
        } else {
            (object, expected) = (stored(&object), stored(&expected));
            let is_new = self.live.is_none();
            fill_defaults(&mut object, &expected, &|name| is_new || DEFAULTED.contains(&name));
        }
        assert_eq!(pretty(&object), pretty(&expected), "{self}");
    }

    fn check_error(&self, error: &ApiError) {
        let sorted = |causes: &Value| {
            let mut causes = causes.as_array().cloned().unwrap_or_default();
            causes.sort_by_key(Value::to_string);
            causes
        };
        assert_eq!(error.code, self.operation["code"], "{error}\n{self}");
        assert_eq!(error.message, self.operation["message"], "{self}");
        assert_eq!(sorted(&error.details["causes"]), sorted(&self.operation["causes"]), "{self}");
    }
}

impl std::fmt::Display for Replay<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let live = self.live.as_ref().unwrap_or(&Value::Null);
        write!(formatter, "{} {}\non {}", self.kind, pretty(self.operation), pretty(live))
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// Built-in kinds are stored without empty fields.
fn stored(value: &Value) -> Value {
    let is_empty = |value: &Value| [json!({}), json!([]), json!(null), json!(0)].contains(value);
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), stored(value)));
            fields.filter(|(_, value)| !is_empty(value)).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(stored).collect(),
        scalar => scalar.clone(),
    }
}

/// Takes over from the stored object what the server filled in.
fn fill_defaults(object: &mut Value, expected: &Value, is_default: &dyn Fn(&str) -> bool) {
    match (object, expected) {
        (Value::Object(object), Value::Object(expected)) => {
            for (name, value) in expected {
                if is_default(name) && !object.contains_key(name) {
                    object.insert(name.clone(), value.clone());
                }
                if let Some(field) = object.get_mut(name) {
                    fill_defaults(field, value, is_default);
                }
            }
        }
        (Value::Array(items), Value::Array(expected)) => {
            for (item, expected) in items.iter_mut().zip(expected) {
                fill_defaults(item, expected, is_default);
            }
        }
        _ => {}
    }
}
