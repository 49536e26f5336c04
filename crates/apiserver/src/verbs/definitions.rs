//! CustomResourceDefinitions as objects: what a write of one adds to it, and how the registry follows.
//! What a definition means is in the crate `apiextensions`.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use store::Range;
use supervise::Recovered as _;

use crate::call::Call;
use crate::engine::Engine;
use crate::extension::Extension;
use crate::registry::{CLEANUP, DEFINITIONS, Registry, compile_definition, definition_condition};
use crate::storage::{stored, text};

/// What a definition says about names.
#[derive(Deserialize)]
struct Named {
    metadata: stored::OutlineMetadata,
    spec: Grouped,
    #[serde(default)]
    status: Accepted,
}

#[derive(Deserialize)]
struct Grouped {
    group: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Accepted {
    accepted_names: Value,
}

impl From<Named> for Value {
    fn from(named: Named) -> Value {
        json!({
            "metadata": { "name": named.metadata.name },
            "spec": { "group": named.spec.group },
            "status": { "acceptedNames": named.status.accepted_names },
        })
    }
}

fn is_definition(call: &Call) -> bool {
    &*call.resource.table == DEFINITIONS
}

/// What a definition has before it is checked: its defaults, and the status it keeps.
pub(crate) fn fill_in(call: &Call, object: &mut Value, old: Option<&Value>) {
    if is_definition(call) && call.subresource() != "status" {
        apiextensions::default_crd(object);
        apiextensions::keep_status(object, old);
    }
}

/// What a definition gets with every write: the finalizer that guards its objects, and the status that
/// says whether its names are free. Both at once, so that a definition is usable when kubectl returns.
pub(crate) fn prepare(engine: &Engine, call: &Call, object: &mut Value, old: Option<&Value>) {
    if !is_definition(call) {
        return;
    }
    if old.is_none() {
        object["metadata"]["finalizers"] = with_entry(&object["metadata"]["finalizers"], CLEANUP);
    }
    if call.subresource() == "status" {
        return;
    }
    let name = text(object, "/metadata/name").to_owned();
    let now = engine.timestamp();
    apiextensions::accept_names(object, engine.other_definitions(&name), &now);
    apiextensions::establish(object, &now);
}

/// Adds the `Terminating` condition.
pub(crate) fn mark_terminating(engine: &Engine, call: &Call, object: &mut Value) {
    if !is_definition(call) || definition_condition(object, "Terminating").is_some() {
        return;
    }
    let terminating = json!({
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        "lastTransitionTime": engine.timestamp(),
    });
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.push(terminating);
    object["status"]["conditions"] = conditions.into();
}

fn with_entry(list: &Value, entry: &str) -> Value {
    let mut entries = list.as_array().cloned().unwrap_or_default();
    if !entries.iter().any(|one| one == entry) {
        entries.push(entry.into());
    }
    entries.into()
}

impl Engine {
    /// Whether a definition's names are free depends on all the others, so definitions are written one
    /// at a time.
    pub async fn definition_lock(&self, call: &Call) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match is_definition(call) {
            true => Some(self.definition_writes.lock().await),
            false => None,
        }
    }

    /// The names of every other definition. They are read when the first is asked for, and without the schemas, which
    /// are nearly all of a definition.
    fn other_definitions(&self, name: &str) -> impl Iterator<Item = Value> {
        let entries = || {
            let page = self.store.range(DEFINITIONS, Range::default());
            page.map(|page| page.entries).unwrap_or_default()
        };
        let others = std::iter::once_with(entries).flatten().filter(move |entry| &*entry.key != name);
        others.map(|entry| stored::read::<Named>(&entry.value).into())
    }

    /// Makes the registry follow a definition that was written or removed.
    pub fn follow_definition(&self, name: &str, definition: Option<&Value>) {
        let mut custom = self.custom.lock().recovered();
        let after = definition.and_then(|definition| compile_definition(definition, self.store.revision()));
        match (custom.get(name), after) {
            (Some(before), Some(after)) if before.is_equivalent(&after) => return,
            (None, None) => return,
            (_, Some(after)) => drop(custom.insert(name.to_owned(), after)),
            (_, None) => drop(custom.remove(name)),
        }
        let extension = self.extension.as_ref().map(|served| &served.extension);
        let registry = Registry::new(custom.values(), extension.map(Extension::resources));
        let old = self.registry.swap(Arc::new(registry));
        // Watches of a kind that is served differently now end; their clients come back.
        let stale = old
            .all()
            .filter(|resource| resource.custom.as_ref().is_some_and(|definition| definition.name == name));
        stale.for_each(|resource| resource.gone.cancel());
    }
}
