//! A snapshot of a control plane, read once with lists, as input of `decide` for `plan` and `why`. Writes and watches
//! nothing; what it lacks permission to read is an error, never absent.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::kinds::{self, Kind};
use api::{Binding, Unread, Work, names};
use decide::snapshot::Change;
use decide::{Gates, Snapshot, Template};
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use kube::core::TypeMeta;
use serde_json::Value;

use crate::cache::{WorkKey, binding_key};
use crate::discovery::{self, TemplateKind};
use crate::reflector::Reflected as _;
use crate::rest::{self, Collection, Rest};

mod secrets;

pub use secrets::{hide_values, is_secret};

/// How many collections are read at once.
const CONCURRENT_LISTS_MAX: usize = 8;
/// How often a list is restarted whose continue token has expired.
const LIST_ATTEMPTS_MAX: usize = 3;

/// The kinds that decisions depend on, in an order in which inserting the later ones is cheap.
const RULES: [&Kind; 8] = [
    &kinds::CLUSTER,
    &kinds::CLUSTER_TAINT_POLICY,
    &kinds::PROPAGATION_POLICY,
    &kinds::CLUSTER_PROPAGATION_POLICY,
    &kinds::OVERRIDE_POLICY,
    &kinds::CLUSTER_OVERRIDE_POLICY,
    &kinds::ROLLOUT_POLICY,
    &kinds::CLUSTER_ROLLOUT_POLICY,
];

/// Kinds that Karmada, or an older one, does not have.
const OPTIONAL: [&str; 3] = ["RolloutPolicy", "ClusterRolloutPolicy", "ClusterTaintPolicy"];

/// Everything that was listed of a control plane.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// What decisions depend on. The values of Secrets are not in it, only their digests.
    pub snapshot: Snapshot,
    /// The kinds that templates can have.
    pub kinds: Vec<TemplateKind>,
}

/// Why a control plane could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// API discovery failed.
    #[error("find kinds")]
    Kinds(#[source] rest::Error),
    /// A group does not say which kinds it has.
    #[error("find kinds: nobody answers for {0}, so what it has is not known")]
    Unanswered(String),
    /// A kind could not be listed.
    #[error("list every {kind}")]
    List {
        /// The kind.
        kind: String,
        /// Why not.
        #[source]
        source: rest::Error,
    },
}

/// Lists everything that decisions depend on; `now` is the time of the decisions. Feature gates are not API objects, so
/// the caller passes them.
pub async fn list_snapshot(control: &Rest, gates: Gates, now: Timestamp) -> Result<Listed, Error> {
    let found = discovery::template_kinds(control).await.map_err(Error::Kinds)?;
    if let Some(group) = found.unanswered.into_iter().next() {
        return Err(Error::Unanswered(group));
    }
    let mut snapshot = Snapshot { gates, now, ..Snapshot::default() };
    let (rules, templates, bindings) =
        futures::try_join!(rules(control), templates(control, &found.kinds), bindings(control))?;
    rules.into_iter().flatten().for_each(|object| put(&mut snapshot, object));
    templates.into_iter().flatten().for_each(|template| drop(snapshot.templates.insert(template)));
    let keyed = |binding: Binding| (Arc::new(binding_key(&binding.metadata)), Arc::new(binding));
    snapshot.bindings = Arc::new(bindings.into_iter().map(keyed).collect());
    Ok(Listed { snapshot, kinds: found.kinds })
}

/// Reads every Work, by the cluster it is for; no decision depends on them. The values of Secrets are not in it.
pub async fn works(control: &Rest) -> Result<BTreeMap<WorkKey, Work>, Error> {
    let read = |object: Value| {
        let mut work: Work = serde_json::from_value(object).ok()?;
        let manifests = work.spec.workload.manifests.iter_mut();
        manifests.filter(|manifest| is_secret(manifest)).for_each(hide_values);
        let cluster = names::cluster_of_execution_namespace(&work.metadata.namespace)?.to_owned();
        Some((WorkKey { cluster, name: work.metadata.name.clone() }, work))
    };
    Ok(of_kind(control, &kinds::WORK, read).await?.into_iter().collect())
}

async fn rules(control: &Rest) -> Result<Vec<Vec<Value>>, Error> {
    let lists = futures::stream::iter(RULES).map(|kind| async move {
        match of_kind(control, kind, Some).await {
            Err(Error::List { source: rest::Error::NotFound { .. }, .. })
                if OPTIONAL.contains(&kind.kind) =>
            {
                Ok(Vec::new())
            }
            listed => listed,
        }
    });
    lists.buffered(CONCURRENT_LISTS_MAX).try_collect().await
}

async fn templates(control: &Rest, kinds: &[TemplateKind]) -> Result<Vec<Vec<Template>>, Error> {
    let lists = futures::stream::iter(kinds).map(|kind| {
        let collection = Collection::new(&kind.api_version, &kind.plural, "");
        let types = TypeMeta { api_version: kind.api_version.clone(), kind: kind.kind.clone() };
        list(control, collection, types, template)
    });
    lists.buffered(CONCURRENT_LISTS_MAX).try_collect().await
}

async fn bindings(control: &Rest) -> Result<Vec<Binding>, Error> {
    let read = |object| {
        let mut binding: Binding = serde_json::from_value(object).ok()?;
        // No decision depends on a binding's managedFields, and they are most of it.
        binding.metadata.managed_fields = Vec::new();
        Some(binding)
    };
    let (mut bindings, of_clusters) = futures::try_join!(
        of_kind(control, &kinds::RESOURCE_BINDING, read),
        of_kind(control, &kinds::CLUSTER_RESOURCE_BINDING, read)
    )?;
    bindings.extend(of_clusters);
    Ok(bindings)
}

/// Its digest is that of the whole object; then the values go.
fn template(mut object: Value) -> Option<Template> {
    let template = Template::read(&object)?;
    if names::is_no_template(&template.key.namespace, &object) {
        return None;
    }
    if !is_secret(&object) {
        return Some(template);
    }
    hide_values(&mut object);
    template.showing(&object)
}

fn put(snapshot: &mut Snapshot, object: Value) {
    if let Err(error) = snapshot.apply(&Change::Put(Arc::new(object))) {
        // An object that cannot be decoded was written by another client; decisions ignore it.
        tracing::warn!(%error, "an object cannot be decoded and is ignored");
    }
}

async fn of_kind<T: Send>(
    control: &Rest,
    kind: &Kind,
    read: fn(Value) -> Option<T>,
) -> Result<Vec<T>, Error> {
    let types = TypeMeta { api_version: kind.api_version(), kind: kind.kind.to_owned() };
    list(control, Collection::of(kind, ""), types, read).await
}

/// What is read is kept at once, so that no list is held twice.
async fn list<T: Send>(
    control: &Rest,
    collection: Collection,
    types: TypeMeta,
    read: fn(Value) -> Option<T>,
) -> Result<Vec<T>, Error> {
    let mut tries = 1;
    loop {
        let mut objects = Vec::new();
        let each = |text: Unread| {
            let Ok(mut object) = text.read::<Value>() else { return };
            object.set_type(&types);
            objects.extend(read(object));
        };
        match control.pages(&collection, "", each).await {
            Ok(_) => return Ok(objects),
            Err(rest::Error::Refused { code: 410, .. }) if tries < LIST_ATTEMPTS_MAX => tries += 1,
            Err(source) => return Err(Error::List { kind: types.kind, source }),
        }
    }
}
