//! Kubernetes in a hundred lines: what each write does to objects, and every change that ever happened.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::steps::{Condition, Kind, Known, Place, Wish};

/// An object without what the server alone decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Thing {
    pub uid: String,
    pub label: Option<String>,
    pub value: String,
    pub finalizers: Vec<String>,
    pub deleting: bool,
    pub generation: Option<u64>,
    pub revision: u64,
}

impl Thing {
    /// What a server's object says.
    pub fn read(object: &Value) -> (Place, Self) {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let finalizers = metadata["finalizers"].as_array().into_iter().flatten().map(text).collect();
        let kind = if object["kind"] == "ConfigMap" { Kind::Map } else { Kind::Widget };
        let thing = Self {
            uid: text(&metadata["uid"]),
            label: metadata["labels"]["l"].as_str().map(str::to_owned),
            value: text(if kind == Kind::Map { &object["data"]["value"] } else { &object["spec"]["value"] }),
            finalizers,
            deleting: metadata["deletionTimestamp"].is_string(),
            generation: metadata["generation"].as_u64(),
            revision: text(&metadata["resourceVersion"]).parse().expect("a resourceVersion"),
        };
        (Place::read(kind, metadata), thing)
    }

    pub fn matches(&self, selector: &str) -> bool {
        match selector {
            "l=1" => self.label.as_deref() == Some("1"),
            "l!=1" => self.label.as_deref() != Some("1"),
            "!l" => self.label.is_none(),
            _ => true,
        }
    }
}

impl Place {
    fn read(kind: Kind, metadata: &Value) -> Self {
        let find = |words: &[&'static str], value: &Value| {
            *words.iter().find(|word| value == **word).expect("only what the test made is there")
        };
        let namespace = find(&super::steps::NAMESPACES, &metadata["namespace"]);
        Self { kind, namespace, name: find(&super::steps::NAMES, &metadata["name"]) }
    }

    /// Whether a list over this scope shows it.
    pub fn is_in(&self, kind: Kind, scope: Option<&str>) -> bool {
        self.kind == kind && scope.is_none_or(|namespace| namespace == self.namespace)
    }
}

/// One write that took effect.
#[derive(Clone, Debug)]
pub struct Change {
    pub place: Place,
    pub revision: u64,
    pub before: Option<Thing>,
    /// Absent when the object is gone.
    pub after: Option<Thing>,
}

/// What a request is answered with.
pub type Verdict = Result<Effect, (u16, &'static str)>;

/// What an accepted write does.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Nothing,
    Put(Thing),
    Gone,
}

#[derive(Default)]
pub struct World {
    pub objects: BTreeMap<Place, Thing>,
    /// Whether each namespace is being deleted.
    pub namespaces: BTreeMap<&'static str, bool>,
    pub history: Vec<Change>,
    pub compacted: u64,
    pub revision: u64,
}

impl World {
    /// The objects at a revision, in the order of their keys.
    pub fn at(&self, revision: u64) -> BTreeMap<Place, Thing> {
        let mut objects = BTreeMap::new();
        for change in self.history.iter().filter(|change| change.revision <= revision) {
            match &change.after {
                Some(thing) => objects.insert(change.place, thing.clone()),
                None => objects.remove(&change.place),
            };
        }
        objects
    }

    pub fn create(&self, place: Place, wish: &Wish) -> Verdict {
        match self.namespaces.get(place.namespace) {
            None => return Err((404, "NotFound")),
            Some(true) => return Err((403, "Forbidden")),
            Some(false) => {}
        }
        if self.objects.contains_key(&place) {
            return Err((409, "AlreadyExists"));
        }
        let generation = (place.kind == Kind::Widget).then_some(1);
        Ok(Effect::Put(Thing {
            uid: String::new(),
            label: wish.label.map(str::to_owned),
            value: wish.value.to_string(),
            finalizers: wish.finalizers.iter().map(|one| (*one).to_owned()).collect(),
            deleting: false,
            generation,
            revision: 0,
        }))
    }

    /// An update or a patch that sets everything that the wish says.
    pub fn change(&self, place: Place, wish: &Wish, known: Known, is_update: bool) -> Verdict {
        let Some(old) = self.objects.get(&place) else { return Err((404, "NotFound")) };
        match known {
            Known::Nothing if is_update && place.kind == Kind::Widget => return Err((422, "Invalid")),
            Known::Stale => return Err((409, "Conflict")),
            _ => {}
        }
        let mut next = old.clone();
        next.label = wish.label.map(str::to_owned);
        next.value = wish.value.to_string();
        next.finalizers = wish.finalizers.iter().map(|one| (*one).to_owned()).collect();
        Self::settle(old, next)
    }

    pub fn set_value(&self, place: Place, value: u8, fits: bool) -> Verdict {
        let Some(old) = self.objects.get(&place) else { return Err((404, "NotFound")) };
        if !fits {
            return Err((422, "Invalid"));
        }
        Self::settle(old, Thing { value: value.to_string(), ..old.clone() })
    }

    fn settle(old: &Thing, mut next: Thing) -> Verdict {
        if old.deleting && next.finalizers.iter().any(|one| !old.finalizers.contains(one)) {
            return Err((422, "Invalid"));
        }
        if next == *old {
            return Ok(Effect::Nothing);
        }
        if next.value != old.value {
            next.generation = next.generation.map(|generation| generation + 1);
        }
        match next.deleting && next.finalizers.is_empty() {
            true => Ok(Effect::Gone),
            false => Ok(Effect::Put(next)),
        }
    }

    pub fn delete(&self, place: Place, condition: Condition) -> Verdict {
        let Some(old) = self.objects.get(&place) else { return Err((404, "NotFound")) };
        if matches!(condition, Condition::Uid(false) | Condition::Version(false)) {
            return Err((409, "Conflict"));
        }
        match (old.finalizers.is_empty(), old.deleting) {
            (true, _) => Ok(Effect::Gone),
            (false, true) => Ok(Effect::Nothing),
            (false, false) => {
                let generation = old.generation.map(|generation| generation + 1);
                Ok(Effect::Put(Thing { deleting: true, generation, ..old.clone() }))
            }
        }
    }

    /// Writes down what happened, at the next revision.
    pub fn commit(&mut self, place: Place, effect: &Effect, uid: Option<String>) {
        let before = self.objects.get(&place).cloned();
        let after = match effect {
            Effect::Nothing => return,
            Effect::Gone => None,
            Effect::Put(thing) => {
                let uid = before.as_ref().map(|before| before.uid.clone()).or(uid).unwrap_or_default();
                Some(Thing { uid, revision: self.revision + 1, ..thing.clone() })
            }
        };
        self.revision += 1;
        match &after {
            Some(thing) => self.objects.insert(place, thing.clone()),
            None => self.objects.remove(&place),
        };
        self.history.push(Change { place, revision: self.revision, before, after });
    }

    /// The body of an object.
    pub fn body(place: Place, wish: &Wish, version: Option<&str>) -> Value {
        let mut metadata = json!({ "name": place.name, "finalizers": wish.finalizers });
        if let Some(label) = wish.label {
            metadata["labels"] = json!({ "l": label });
        }
        if let Some(version) = version {
            metadata["resourceVersion"] = version.into();
        }
        let value = json!({ "value": wish.value.to_string() });
        match place.kind {
            Kind::Map => json!({ "metadata": metadata, "data": value }),
            Kind::Widget => {
                json!({ "apiVersion": "model.io/v1", "kind": "Widget", "metadata": metadata, "spec": value })
            }
        }
    }
}
