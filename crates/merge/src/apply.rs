//! Server-side apply and field ownership: maintains `metadata.managedFields` on every write. Pure functions over
//! objects and their schema; must not know about requests or storage.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::patch::{NESTING_MAX, depth, unclassified};
use apimachinery::error::ApiError;
use schema::Schema;

mod check;
mod compare;
mod conflict;
mod created;
mod element;
mod fields;
mod last_applied;
mod managed;
mod merge;
mod owned;
mod remove;
mod reset;
mod scale;
mod set;
mod shape;

pub use reset::{custom_reset_fields, reset_fields};
pub use scale::{managed_fields_after_scale, managed_fields_of_scale};

use check::{Duplicates, type_errors};
use compare::Comparison;
use conflict::Conflict;
use element::same;
use managed::{Managed, Operation, Owner};
use set::PathSet;
use shape::Shape;

/// Owns what an object had before anyone applied to it.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// What a write says about itself.
#[derive(Debug, Clone, Copy)]
pub struct WriteContext<'a> {
    /// `fieldManager`, or what stands for it; empty is written as `unknown`.
    pub manager: &'a str,
    /// Of the request, such as `apps/v1`.
    pub api_version: &'a str,
    /// Of the request.
    pub kind: &'a str,
    /// Empty for the main resource.
    pub subresource: &'a str,
    /// When the write happens.
    pub now: Timestamp,
    /// Of the kind in this version.
    pub schema: &'a Schema,
    /// Whether the kind is a built-in one, whose absent structs are the same as empty ones.
    pub builtin: bool,
    /// Fields that this write cannot change and so cannot own, as `reset_fields` says.
    pub reset: &'a [&'a [&'a str]],
}

impl<'a> WriteContext<'a> {
    fn shape(&self) -> Shape<'a> {
        Shape::of_object(self.schema, self.builtin)
    }

    fn owner(&self, manager: &str, operation: Operation) -> Owner {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        Owner {
            manager: manager.to_owned(),
            operation,
            subresource: self.subresource.to_owned(),
            api_version: self.api_version.to_owned(),
        }
    }

    fn reset_paths(&self) -> PathSet {
        let mut set = PathSet::default();
        for path in self.reset {
            set.insert_fields(path);
        }
        set
    }

    fn compare(&self, shape: Shape<'_>, old: &Value, new: &Value) -> Comparison {
        let mut comparison = Comparison::of_objects(shape, old, new);
        comparison.ignore(&self.reset_paths());
        comparison
    }
}

/// Sets `metadata.managedFields` of an object that is about to be written by anything but apply.
///
/// `new` is complete but for what the server itself fills in after it; `live` is what is stored, if
/// anything. A write that changes nothing leaves `managedFields` as they are.
pub fn track_update(live: Option<&Value>, new: &mut Value, write: &WriteContext<'_>) {
    let requested = take_managed_fields(new);
    if live.is_none() && requested.is_none() {
        return track_create(new, write);
    }
    let stored = live.map(|live| &live["metadata"]["managedFields"]).filter(|stored| !stored.is_null());
    if live.is_some() && stored.is_none() && requested.is_none() {
        // The object has no owners, and gets none until a manager applies it.
        return;
    }
    let empty = Value::Object(Map::new());
    let difference = write.compare(write.shape().for_stored(), live.unwrap_or(&empty), new);
    let is_stored = requested.is_none() || requested.as_ref() == stored;
    if let (true, true, Some(stored)) = (difference.is_empty(), is_stored, stored) {
        set_managed_fields(new, Some(requested.unwrap_or_else(|| stored.clone())));
        return;
    }
    let mut managed = current_entries(stored, requested.as_ref(), write);
    if managed.entries.is_empty() && live.is_some() {
        return;
    }
    for entry in &mut managed.entries {
        entry.set = owned::reconciled(write.shape(), std::mem::take(&mut entry.set));
    }
    managed.revoke(&[&difference.modified, &difference.added, &difference.removed]);
    let mut gained = difference.into_changed();
    gained.subtract(Shape::unownable());
    if !gained.is_empty() {
        // Kubernetes forgets the time of writes through a Scale.
        let time = (write.subresource != "scale").then_some(write.now);
        managed.grant(write.owner(write.manager, Operation::Update), gained, time);
    }
    managed.cap_updaters();
    set_managed_fields(new, managed.encode());
}

/// `managedFields` as they are written once they were read, or what is wrong with them.
pub fn managed_fields_read_again(list: &Value) -> Result<Option<Value>, String> {
    Managed::decode(list).map(Managed::encode)
}

fn track_create(new: &mut Value, write: &WriteContext<'_>) {
    let shape = write.shape().for_stored();
    let fields = created::fields_of_creator(shape, new, &write.reset_paths());
    if !fields.is_empty() {
        let entry = managed::encode(write.owner(write.manager, Operation::Update), Some(write.now), fields);
        set_managed_fields(new, Some(Value::Array(vec![entry])));
    }
}

/// The entries that a write starts from: those of the request where it brings its own, which it can only
/// on the main resource; otherwise those that are stored.
fn current_entries(stored: Option<&Value>, requested: Option<&Value>, write: &WriteContext<'_>) -> Managed {
    let requested = requested.filter(|_| write.subresource.is_empty());
    if requested.is_some_and(|requested| is_reset(requested, write.builtin)) {
        return Managed::default();
    }
    let decoded = |list: Option<&Value>| Managed::decode(list?).ok();
    let brought = decoded(requested).filter(|managed| !managed.entries.is_empty());
    brought.or_else(|| decoded(stored)).unwrap_or_default()
}

/// `[{}]` asks to forget all owners; so does `[]`, except for custom resources, whose metadata loses empty
/// lists before anyone looks.
pub fn is_reset(requested: &Value, builtin: bool) -> bool {
    match requested.as_array().map(Vec::as_slice) {
        Some([]) => builtin,
        Some([Value::Object(entry)]) => entry.is_empty(),
        _ => false,
    }
}

/// The object that server-side apply makes, with `metadata.managedFields`, before defaults: the live object with
/// `applied` merged into it, without fields that this manager applied before, does not apply now and no other manager
/// owns. Answers 409 where others own a field with a different value, unless `force` takes it.
pub fn server_side_apply(
    live: Option<&Value>,
    applied: &Value,
    force: bool,
    write: &WriteContext<'_>,
) -> Result<Value, ApiError> {
    check_type(applied, write)?;
    let empty = Value::Object(Map::new());
    let base = live.unwrap_or(&empty);
    let mut managed = Managed::decode(&base["metadata"]["managedFields"])
        .map_err(|error| unclassified(format!("failed to decode managed fields: {error}")))?;
    if managed.entries.is_empty() {
        let mut existing = write.compare(write.shape().for_stored(), &empty, base).into_changed();
        existing.subtract(Shape::unownable());
        if !existing.is_empty() {
            let owner = write.owner(BEFORE_FIRST_APPLY, Operation::Update);
            managed.grant(owner, existing, Some(write.now));
        }
    }
    check_objects(base, applied, write)?;
    let application = Application { base, is_new: live.is_none(), applied, write };
    let (mut object, managed) = application.apply_or_take_over(managed, force)?;
    if write.manager == last_applied::KUBECTL {
        last_applied::refresh(&mut object, applied);
    }
    set_managed_fields(&mut object, managed.encode());
    Ok(object)
}

fn check_type(applied: &Value, write: &WriteContext<'_>) -> Result<(), ApiError> {
    if !applied.is_object() || depth(applied) > NESTING_MAX {
        return Err(ApiError::bad_request("error decoding YAML: not an object, or nested too deeply"));
    }
    if applied["apiVersion"] != write.api_version || applied["kind"] != write.kind {
        let text = |name: &str| applied[name].as_str().unwrap_or_default().to_owned();
        let message = format!("invalid object type: {}", qualified_kind(&text("apiVersion"), &text("kind")));
        return Err(ApiError::bad_request(message));
    }
    if !applied["metadata"]["managedFields"].is_null() {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

fn check_objects(live: &Value, applied: &Value, write: &WriteContext<'_>) -> Result<(), ApiError> {
    let checks = [("patch", applied, Duplicates::Refused), ("live", live, Duplicates::Allowed)];
    for (which, object, duplicates) in checks {
        if let Some(errors) = type_errors(write.shape(), object, duplicates) {
            let metadata = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
            return Err(unclassified(format!(
                "failed to create typed {which} object ({}/{}; {}): {errors}",
                metadata("namespace"),
                metadata("name"),
                qualified_kind(write.api_version, write.kind),
            )));
        }
    }
    Ok(())
}

/// `apps/v1, Kind=Deployment`; the core group is empty and its slash stays.
fn qualified_kind(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// One configuration on its way onto one object.
struct Application<'a> {
    base: &'a Value,
    is_new: bool,
    applied: &'a Value,
    write: &'a WriteContext<'a>,
}

impl Application<'_> {
    /// Conflicts that only concern what client-side apply set do not stop kubectl.
    fn apply_or_take_over(&self, managed: Managed, force: bool) -> Result<(Value, Managed), ApiError> {
        let conflicts = match self.apply(managed.clone(), force) {
            Ok(outcome) => return Ok(outcome),
            Err(conflicts) => conflicts,
        };
        let (shape, api_version) = (self.write.shape(), self.write.api_version);
        let allowed = match self.write.manager {
            last_applied::KUBECTL => last_applied::still_as_applied(shape, self.base, api_version),
            _ => None,
        };
        let Some(allowed) = allowed else { return Err(conflict::refusal(conflicts)) };
        let left: Vec<Conflict> = conflicts
            .into_iter()
            .map(|mut conflict| {
                conflict.paths.subtract(&allowed);
                conflict
            })
            .filter(|conflict| !conflict.paths.is_empty())
            .collect();
        match left.is_empty() {
            true => self.apply(managed, true).map_err(conflict::refusal),
            false => Err(conflict::refusal(left)),
        }
    }

    fn apply(&self, mut managed: Managed, force: bool) -> Result<(Value, Managed), Vec<Conflict>> {
        let (shape, write) = (self.write.shape(), self.write);
        for entry in &mut managed.entries {
            entry.set = owned::reconciled(shape, std::mem::take(&mut entry.set));
        }
        let owner = write.owner(write.manager, Operation::Apply);
        let (last, last_time) = match managed.position(&owner).map(|place| managed.entries.remove(place)) {
            Some(entry) => (entry.set, entry.time),
            None => (PathSet::default(), None),
        };
        let mut set = owned::mentioned(shape, self.applied);
        set.subtract_below(&write.reset_paths());
        let merged = merge::merged(shape, self.base, self.applied);
        let mut object = self.pruned(merged, &managed, &last, &set);
        let mut difference = write.compare(shape, self.base, &object);
        let is_changed = self.is_new || !same(self.base, &object);
        if write.builtin {
            remove::drop_nulls(shape, &mut object);
        }
        let removed = std::mem::take(&mut difference.removed);
        let changed = difference.into_changed();
        let conflicts = conflicts(&managed, &changed);
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        managed.revoke(&[&changed, &removed]);
        let time = if is_changed { Some(write.now) } else { last_time };
        set.subtract(Shape::unownable());
        if !set.is_empty() {
            managed.grant(owner, set, time);
        }
        Ok((object, managed))
    }

    /// Removes what this manager applied last and does not apply now, except what others own.
    fn pruned(&self, merged: Value, others: &Managed, last: &PathSet, set: &PathSet) -> Value {
        let shape = self.write.shape();
        if last.is_subset(set) {
            return merged;
        }
        let complete = |set: &PathSet| owned::with_declared_parents(shape, set);
        let last = complete(last);
        let merged_set = complete(&owned::mentioned(shape, &merged));
        let stripped = remove::without(shape, &merged, &last);
        let mut owned = set.clone();
        for entry in &others.entries {
            owned.merge(entry.set.clone());
        }
        let mut unowned = merged_set.clone();
        unowned.subtract(&complete(&owned::mentioned(shape, &stripped)));
        unowned.subtract(&complete(&owned));
        let kept = remove::without(shape, &merged, &unowned);
        let mut gone = merged_set;
        gone.subtract(&complete(&owned::mentioned(shape, &kept)));
        remove::without(shape, &merged, &gone.intersection(&last))
    }
}

fn conflicts(others: &Managed, changed: &PathSet) -> Vec<Conflict> {
    let of = |entry: &managed::Entry| Conflict {
        owner: entry.owner.clone(),
        paths: entry.set.intersection(changed),
    };
    others.entries.iter().map(of).filter(|conflict| !conflict.paths.is_empty()).collect()
}

/// Puts the old times back where a write changed nothing but times in `managedFields`, so that it can be
/// seen to be no write. To be called with the object as it would be stored.
pub fn keep_times_of_noop(live: &Value, new: &mut Value) {
    let Some(Value::Array(stored)) = live["metadata"].get("managedFields") else { return };
    let Some(mut entries) = take_managed_fields(new) else { return };
    // A new time may have moved an entry, so that entries are not compared by their place.
    let is_stored = |entry: &Value| stored.iter().any(|stored| equal_except(entry, stored, "time"));
    let same_entries = entries
        .as_array()
        .is_some_and(|entries| entries.len() == stored.len() && entries.iter().all(is_stored));
    if same_entries && equal_except_managed_fields(live, new) {
        entries = Value::Array(stored.clone());
    }
    set_managed_fields(new, Some(entries));
}

fn equal_except(left: &Value, right: &Value, ignored: &str) -> bool {
    fn fields<'a>(value: &'a Value, ignored: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
        value.as_object().into_iter().flatten().filter(move |(name, _)| *name != ignored)
    }
    fields(left, ignored).eq(fields(right, ignored))
}

fn equal_except_managed_fields(live: &Value, new: &Value) -> bool {
    let (Some(live), Some(new)) = (live.as_object(), new.as_object()) else { return false };
    live.len() == new.len()
        && live.iter().zip(new).all(|((live_name, live), (new_name, new))| {
            live_name == new_name
                && match live_name == "metadata" {
                    true => equal_except(live, new, "managedFields"),
                    false => live == new,
                }
        })
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    metadata.remove("managedFields").filter(|list| !list.is_null())
}

fn set_managed_fields(object: &mut Value, list: Option<Value>) {
    let Some(object) = object.as_object_mut() else { return };
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Some(metadata) = metadata.as_object_mut() {
        match list {
            Some(list) => metadata.insert("managedFields".to_owned(), list),
            None => metadata.remove("managedFields"),
        };
    }
}

#[cfg(test)]
mod tests;
