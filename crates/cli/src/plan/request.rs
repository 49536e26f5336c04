//! One change as a request to the control plane, made as `kubectl apply` and `kubectl delete` make it, so that the plan
//! shows what they would do. It can be sent as a dry run first.

use anyhow::{Context as _, Result};
use controllers::rest::{Collection, Error, Path, Rest};
use controllers::snapshot::is_secret;
use decide::template::digest;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::kinds::{Kinds, Target};

/// Where kubectl writes a copy of what was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The field manager of our writes.
const MANAGER: &str = "longshore-apply";
/// How deep a manifest may nest; API servers take far less.
const DEPTH_MAX: usize = 100;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verb {
    /// The object is new.
    Create,
    /// Fields of it are changed.
    Patch,
    /// It goes.
    Delete,
}

/// A change of one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// What is done.
    pub verb: Verb,
    /// The object as kubectl prints it.
    pub object: String,
    /// `group/version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Empty for kinds without namespaces.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Where requests go: the collection.
    pub collection: Collection,
    /// The manifest, or the patch.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
    /// The state of the object before; empty if it is new.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
}

impl Request {
    /// What `kubectl apply` would ask for, and the object as it is.
    pub async fn apply(
        rest: &Rest,
        kinds: &Kinds,
        namespace: &str,
        manifest: &Value,
    ) -> Result<(Self, Option<Value>)> {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (api_version, name) = (text("/apiVersion"), text("/metadata/name"));
        let kind = match api_version.split_once('/') {
            Some((group, _)) => kinds.named(&format!("{}.{group}", text("/kind")))?,
            None => kinds.named(text("/kind"))?,
        };
        let namespace = match (kind.namespaced, text("/metadata/namespace")) {
            (false, _) => "",
            (true, "") => namespace,
            (true, own) => own,
        };
        let collection = Collection::new(api_version, &kind.plural, namespace);
        let live: Option<Value> = rest
            .get(&collection.object(name))
            .await
            .with_context(|| format!("read {} {name}", text("/kind")))?;
        let mut wanted = manifest.clone();
        if kind.namespaced {
            wanted["metadata"]["namespace"] = namespace.into();
        }
        let wanted = remembering(wanted);
        let (verb, body) = match &live {
            None => (Verb::Create, wanted),
            Some(live) => (Verb::Patch, patch(live, wanted)),
        };
        let request = Self {
            verb,
            object: format!("{}/{name}", kind.printed()),
            api_version: api_version.to_owned(),
            kind: kind.kind.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            collection,
            body,
            before: live.as_ref().map(state).unwrap_or_default(),
        };
        Ok((request, live))
    }

    /// What `kubectl delete` would ask for, and the object as it is.
    pub async fn delete(rest: &Rest, target: &Target) -> Result<(Self, Option<Value>)> {
        let collection = target.kind.collection(&target.namespace);
        let live: Option<Value> = rest.get(&collection.object(&target.name)).await?;
        let request = Self {
            verb: Verb::Delete,
            object: target.printed(),
            api_version: target.kind.api_version.clone(),
            kind: target.kind.kind.clone(),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            collection,
            body: Value::Null,
            before: live.as_ref().map(state).unwrap_or_default(),
        };
        Ok((request, live))
    }

    /// A merge patch of an object of ours that is there, or its deletion.
    pub fn change(kind: &api::Kind, live: &Value, body: Option<Value>) -> Self {
        let text =
            |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        Self {
            verb: if body.is_some() { Verb::Patch } else { Verb::Delete },
            object: format!("{}.{}/{name}", kind.singular(), kind.group),
            api_version: kind.api_version(),
            kind: kind.kind.to_owned(),
            collection: Collection::of(kind, &namespace),
            namespace,
            name,
            body: body.unwrap_or_default(),
            before: state(live),
        }
    }

    /// A new object of ours.
    pub fn create(kind: &api::Kind, object: &Value) -> Self {
        let change = Self::change(kind, object, Some(object.clone()));
        Self { verb: Verb::Create, before: String::new(), ..change }
    }

    /// The object as it is now; none if it is not there.
    pub async fn live(&self, rest: &Rest) -> Result<Option<Value>, Error> {
        rest.get(&self.path()).await
    }

    /// Sends it; `dry` only tries it. The answer is the object as it would be or is.
    pub async fn send(&self, rest: &Rest, dry: bool) -> Result<Value, Error> {
        let with_options = |path: &Path| {
            let path = path.with("fieldManager", MANAGER).with("fieldValidation", "Strict");
            if dry { path.with("dryRun", "All") } else { path }
        };
        match self.verb {
            Verb::Create => {
                let path = with_options(self.collection.path());
                rest.send(Method::POST, &path, "application/json", Some(&self.body)).await
            }
            Verb::Patch => {
                let path = with_options(&self.path());
                rest.send(Method::PATCH, &path, "application/merge-patch+json", Some(&self.body)).await
            }
            Verb::Delete => {
                let mut options =
                    json!({ "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background" });
                if dry {
                    options["dryRun"] = json!(["All"]);
                }
                rest.send(Method::DELETE, &self.path(), "application/json", Some(&options)).await
            }
        }
    }

    /// What became of it, in kubectl's words.
    pub fn done(&self) -> &'static str {
        match self.verb {
            Verb::Create => "created",
            Verb::Patch => "configured",
            Verb::Delete => "deleted",
        }
    }

    fn path(&self) -> Path {
        self.collection.object(&self.name)
    }
}

/// A fingerprint that stays the same as long as the user's part of an object does. The content of a Secret could be
/// guessed from a digest, so for Secrets it is the resource version.
pub fn state(object: &Value) -> String {
    match is_secret(object) {
        true => format!("version {}", object["metadata"]["resourceVersion"].as_str().unwrap_or_default()),
        false => digest(object),
    }
}

/// The manifest with a copy of itself, by which kubectl later knows what was removed from it.
fn remembering(mut manifest: Value) -> Value {
    let metadata = manifest["metadata"].as_object_mut();
    if let Some(metadata) = metadata {
        let annotations = metadata.entry("annotations").or_insert(Value::Null);
        if !annotations.is_object() {
            *annotations = Value::Object(Map::new());
        }
        annotations.as_object_mut().into_iter().for_each(|all| drop(all.remove(LAST_APPLIED)));
    }
    // Go escapes these characters, and the annotation must not depend on which client applied the file.
    let copy = manifest.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    manifest["metadata"]["annotations"][LAST_APPLIED] = format!("{copy}\n").into();
    manifest
}

/// A merge patch of one value that leaves another, without anything that only the first has.
pub fn replaced(before: &Value, after: &Value) -> Value {
    let mut patch = after.clone();
    forget(before, &mut patch, 0);
    patch
}

/// What makes the live object be as wanted: what was applied before and is wanted no more is removed.
fn patch(live: &Value, wanted: Value) -> Value {
    let applied = live.pointer("/metadata/annotations").and_then(|all| all.get(LAST_APPLIED)?.as_str());
    let applied: Value = applied.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut patch = wanted;
    forget(&applied, &mut patch, 0);
    if let Some(uid) = live.pointer("/metadata/uid") {
        patch["metadata"]["uid"] = uid.clone();
    }
    patch
}

fn forget(applied: &Value, patch: &mut Value, depth: usize) {
    let (Some(applied), Some(patch)) = (applied.as_object(), patch.as_object_mut()) else { return };
    for (key, value) in applied {
        match patch.get_mut(key) {
            Some(wanted) if depth < DEPTH_MAX => forget(value, wanted, depth + 1),
            Some(_) => {}
            None => drop(patch.insert(key.clone(), Value::Null)),
        }
    }
}

/// An object after a merge patch.
pub fn merged(object: &Value, patch: &Value) -> Value {
    merged_at(object, patch, 0)
}

fn merged_at(object: &Value, patch: &Value, depth: usize) -> Value {
    let Some(patch) = patch.as_object().filter(|_| depth < DEPTH_MAX) else { return patch.clone() };
    let mut fields = object.as_object().cloned().unwrap_or_default();
    for (key, value) in patch {
        match value {
            Value::Null => drop(fields.remove(key)),
            value => {
                let before = fields.get(key).cloned().unwrap_or_default();
                fields.insert(key.clone(), merged_at(&before, value, depth + 1));
            }
        }
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_applied_and_is_wanted_no_more_is_removed() {
        let file = |data: Value| json!({ "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data });
        let mut live = remembering(file(json!({ "a": "1", "b": "<2>" })));
        let copy = live["metadata"]["annotations"][LAST_APPLIED].as_str().expect("a copy").to_owned();
        assert_eq!(
            copy,
            "{\"data\":{\"a\":\"1\",\"b\":\"\\u003c2\\u003e\"},\"kind\":\"ConfigMap\",\
             \"metadata\":{\"annotations\":{},\"name\":\"a\"}}\n"
        );
        live["metadata"]["uid"] = "u".into();
        live["data"]["theirs"] = "3".into();
        let same = patch(&live, remembering(file(json!({ "a": "1", "b": "<2>" }))));
        assert_eq!(merged(&live, &same), live, "the same file changes nothing");
        let less = merged(&live, &patch(&live, remembering(file(json!({ "a": "1" })))));
        assert_eq!(less["data"], json!({ "a": "1", "theirs": "3" }));
        let unknown = json!({ "data": { "b": "2" }, "metadata": { "name": "a" } });
        let kept = merged(&unknown, &patch(&unknown, remembering(file(json!({ "a": "1" })))));
        assert_eq!(kept["data"], json!({ "a": "1", "b": "2" }), "what nobody applied is nobody's to remove");
    }
}
