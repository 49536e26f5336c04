//! `metadata.managedFields` as entries of owners: read, written, sorted and capped as Kubernetes does.
//! Must not know how the sets came about.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::set::PathSet;

/// Entries of updates beyond this are collapsed, oldest first.
const UPDATERS_MAX: usize = 10;
const COLLAPSED: &str = "ancient-changes";

/// How an owner came by its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// Server-side apply.
    Apply,
    /// Create, update, or any other patch.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// The identity of an owner: entries with the same one are merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub manager: String,
    pub operation: Operation,
    pub subresource: String,
    pub api_version: String,
}

impl Owner {
    /// An applier is the same whatever version it applies.
    fn is(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// The text that Kubernetes sorts owners by.
    pub fn sort_key(&self) -> String {
        let mut fields = Map::new();
        fields.insert("1manager".into(), self.manager.as_str().into());
        fields.insert("2operation".into(), self.operation.name().into());
        if self.operation == Operation::Update {
            fields.insert("3apiVersion".into(), self.api_version.as_str().into());
        }
        if !self.subresource.is_empty() {
            fields.insert("4subresource".into(), self.subresource.as_str().into());
        }
        Value::Object(fields).to_string()
    }
}

/// One entry of `managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub owner: Owner,
    pub time: Option<Timestamp>,
    pub set: PathSet,
}

/// All entries of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Managed {
    pub entries: Vec<Entry>,
}

impl Managed {
    /// Reads the list, or says what is wrong with it.
    pub fn decode(list: &Value) -> Result<Self, String> {
        let mut managed = Self::default();
        for (index, entry) in list.as_array().into_iter().flatten().enumerate() {
            let entry = decode_entry(index, entry)?;
            match managed.position(&entry.owner) {
                Some(place) => managed.entries[place] = entry,
                None => managed.entries.push(entry),
            }
        }
        Ok(managed)
    }

    /// The list to store; none if no manager owns a field.
    pub fn encode(mut self) -> Option<Value> {
        self.entries.sort_by(|left, right| {
            let key = |entry: &Entry| (entry.owner.operation, seconds(entry));
            let names = |owner: &'_ Owner| {
                (owner.manager.clone(), owner.api_version.clone(), owner.subresource.clone())
            };
            key(left).cmp(&key(right)).then_with(|| names(&left.owner).cmp(&names(&right.owner)))
        });
        let list: Vec<Value> = self.entries.into_iter().map(encode_entry).collect();
        (!list.is_empty()).then_some(Value::Array(list))
    }

    pub fn position(&self, owner: &Owner) -> Option<usize> {
        self.entries.iter().position(|entry| entry.owner.is(owner))
    }

    /// Gives the owner these paths on top of what it has.
    pub fn grant(&mut self, owner: Owner, set: PathSet, time: Option<Timestamp>) {
        match self.position(&owner) {
            Some(place) => {
                let entry = &mut self.entries[place];
                (entry.owner, entry.time) = (owner, time);
                entry.set.merge(set);
            }
            None => self.entries.push(Entry { owner, time, set }),
        }
    }

    /// Takes paths from everyone, and forgets owners that have nothing left.
    pub fn revoke(&mut self, sets: &[&PathSet]) {
        for entry in &mut self.entries {
            for set in sets {
                entry.set.subtract(set);
            }
        }
        self.entries.retain(|entry| !entry.set.is_empty());
    }

    /// Collapses the oldest updates of each version until few enough are left.
    pub fn cap_updaters(&mut self) {
        let is_update = |entry: &&Entry| entry.owner.operation == Operation::Update;
        let mut count = self.entries.iter().filter(is_update).count();
        if count <= UPDATERS_MAX {
            return;
        }
        let mut oldest: Vec<Owner> =
            self.entries.iter().filter(is_update).map(|entry| entry.owner.clone()).collect();
        oldest.sort_by_cached_key(|owner| {
            let time = self.position(owner).map(|place| seconds(&self.entries[place]));
            (time, owner.sort_key())
        });
        let mut first_of_version: BTreeMap<String, Owner> = BTreeMap::new();
        for owner in oldest {
            if count <= UPDATERS_MAX {
                return;
            }
            match first_of_version.get(&owner.api_version) {
                None => {
                    first_of_version.insert(owner.api_version.clone(), owner);
                }
                Some(first) => {
                    self.collapse(&first.clone(), &owner);
                    count -= 1;
                }
            }
        }
    }

    fn collapse(&mut self, first: &Owner, owner: &Owner) {
        let bucket = Owner {
            manager: COLLAPSED.to_owned(),
            operation: Operation::Update,
            subresource: String::new(),
            api_version: owner.api_version.clone(),
        };
        if self.position(&bucket).is_none()
            && let Some(place) = self.position(first)
        {
            self.entries[place].owner = bucket.clone();
        }
        if let Some(place) = self.position(owner).filter(|_| !owner.is(&bucket)) {
            let entry = self.entries.remove(place);
            self.grant(bucket, entry.set, entry.time);
        }
    }
}

fn seconds(entry: &Entry) -> i64 {
    entry.time.map_or(0, |time| time.as_second())
}

fn decode_entry(index: usize, entry: &Value) -> Result<Entry, String> {
    let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let operation = match entry["operation"].as_str() {
        Some("Apply") => Operation::Apply,
        Some("Update") => Operation::Update,
        _ => return Err(String::from("operation must be `Apply` or `Update`")),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err(String::from("apiVersion must not be empty"));
    }
    match entry["fieldsType"].as_str().unwrap_or_default() {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {index}")),
    }
    let owner = Owner { manager: text("manager"), operation, subresource: text("subresource"), api_version };
    let time = entry["time"].as_str().and_then(|time| time.parse().ok());
    Ok(Entry { owner, time, set: PathSet::from_fields(&entry["fieldsV1"])? })
}

fn encode_entry(entry: Entry) -> Value {
    encode(entry.owner, entry.time, entry.set.into_fields())
}

/// One entry of the list.
pub(super) fn encode(owner: Owner, time: Option<Timestamp>, owned: Map<String, Value>) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("apiVersion", owner.api_version.into());
    put("fieldsType", "FieldsV1".into());
    put("fieldsV1", Value::Object(owned));
    if !owner.manager.is_empty() {
        put("manager", owner.manager.into());
    }
    put("operation", owner.operation.name().into());
    if !owner.subresource.is_empty() {
        put("subresource", owner.subresource.into());
    }
    if let Some(time) = time {
        put("time", time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into());
    }
    Value::Object(fields)
}
