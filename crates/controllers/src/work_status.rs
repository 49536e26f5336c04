//! The work status controller: watches in members the objects that Works brought there. An event enqueues the Work,
//! whose execution then repairs drift and collects the status; nothing is read or written here.

use std::collections::BTreeSet;

use api::{ObjectMeta, annotations, names};
use tokio_util::sync::CancellationToken;

use crate::cache::{Served, WorkKey};
use crate::ctx::Ctx;
use crate::rest::{Collection, Rest};
use crate::runtime::{Outline, Priority, Seen, reflect};

/// Only what Works brought.
const MANAGED: &str = "karmada.io/managed=true";

/// One kind in one member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    /// The member.
    pub cluster: String,
    /// `group/version`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

/// Follows one kind in one member until `stop`.
pub async fn follow(ctx: Ctx, watched: Watched, member: Rest, served: Served, stop: CancellationToken) {
    let collection = Collection::new(&watched.api_version, &served.plural, "");
    let fill = (watched.api_version.clone(), watched.kind.clone());
    // An object that is not in the first list may have been deleted between its last reconcile and that list.
    let mut listed = Some(BTreeSet::new());
    let supervisor = ctx.supervisor.clone();
    reflect::<Outline>(member, collection, fill, MANAGED, stop, &supervisor, move |seen| {
        let by_name = |namespace: &str, name: &str| WorkKey {
            cluster: watched.cluster.clone(),
            name: names::work_name(&watched.kind, name, namespace),
        };
        let mine = |key: &WorkKey| key.cluster == watched.cluster && ctx.cache.has_work(key);
        match seen {
            Seen::Is(object) => {
                let metadata = &object.metadata;
                // A client may have removed the annotations, which is drift like any other.
                let key =
                    work_named_on(metadata).unwrap_or_else(|| by_name(&metadata.namespace, &metadata.name));
                if mine(&key) {
                    if let Some(listed) = &mut listed {
                        listed.insert(key.clone());
                    }
                    ctx.queues.execution.add_debounced(key);
                }
            }
            Seen::Gone(namespace, name) => {
                let key = by_name(&namespace, &name);
                if mine(&key) {
                    ctx.queues.execution.add(key, Priority::Resync);
                }
            }
            Seen::Complete => {
                let Some(listed) = listed.take() else { return };
                let Watched { cluster, api_version, kind } = &watched;
                let all = ctx.cache.works_bringing(cluster, api_version, kind);
                let unseen = all.into_iter().filter(|key| !listed.contains(key));
                unseen.for_each(|key| ctx.queues.execution.add(key, Priority::Resync));
            }
            Seen::Refused => {}
        }
    })
    .await;
}

/// The Work that an object says it came from.
fn work_named_on(metadata: &ObjectMeta) -> Option<WorkKey> {
    let annotation = |key: &str| metadata.annotations.get(key);
    let cluster = names::cluster_of_execution_namespace(annotation(annotations::WORK_NAMESPACE)?)?;
    Some(WorkKey { cluster: cluster.to_owned(), name: annotation(annotations::WORK_NAME)?.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_names_its_work() {
        let metadata = json!({ "annotations": {
            "work.karmada.io/namespace": "karmada-es-m1", "work.karmada.io/name": "nginx-1",
        } });
        let key = WorkKey { cluster: "m1".to_owned(), name: "nginx-1".to_owned() };
        assert_eq!(work_named_on(&serde_json::from_value(metadata).unwrap()), Some(key));
        assert_eq!(work_named_on(&ObjectMeta::default()), None);
    }
}
