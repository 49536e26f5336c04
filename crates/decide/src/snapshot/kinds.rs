//! The kinds that a cluster serves once the CRDs that are propagated to it have arrived. The Cluster's own status
//! follows later and decides nothing here.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::cluster::{ApiEnablement, ApiResource};
use serde_json::Value;

use super::Snapshot;
use crate::fields::{list, text};
use crate::template::TemplateKey;

/// True for the definition of a kind.
pub(crate) fn is_definition(key: &TemplateKey) -> bool {
    key.kind == "CustomResourceDefinition" && key.group() == "apiextensions.k8s.io"
}

impl Snapshot {
    /// Lets clusters know the kinds whose definitions are placed there, and says which templates that concerns.
    pub(super) fn learn<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k Arc<TemplateKey>>,
    ) -> BTreeSet<Arc<TemplateKey>> {
        let mut concerned = BTreeSet::new();
        for key in keys.filter(|key| is_definition(key)) {
            let Some(definition) = self.templates.get(key) else { continue };
            let Some(binding) = self.bindings.get(&key.binding()) else { continue };
            let names: BTreeSet<String> =
                binding.spec.clusters.iter().map(|target| target.name.clone()).collect();
            let definition = definition.object();
            let resource = defined(&definition);
            for version in list(&definition, &["spec", "versions"]) {
                let group = text(&definition, &["spec", "group"]);
                let group_version = format!("{group}/{}", text(version, &["name"]));
                if self.enable(&names, &group_version, &resource) {
                    concerned.extend(
                        self.keys(|key| key.api_version == group_version && key.kind == resource.kind),
                    );
                }
            }
        }
        concerned
    }

    /// True when one of the clusters did not know the kind.
    fn enable(&mut self, names: &BTreeSet<String>, group_version: &str, resource: &ApiResource) -> bool {
        let knows = |one: &ApiEnablement| {
            one.group_version == group_version
                && one.resources.iter().any(|known| known.kind == resource.kind)
        };
        let ignorant = |cluster: &api::Cluster| {
            names.contains(&cluster.metadata.name) && !cluster.status.api_enablements.iter().any(knows)
        };
        if !self.clusters.iter().any(ignorant) {
            return false;
        }
        for cluster in Arc::make_mut(&mut self.clusters).iter_mut().filter(|cluster| ignorant(cluster)) {
            cluster.status.api_enablements.push(ApiEnablement {
                group_version: group_version.to_owned(),
                resources: vec![resource.clone()],
            });
        }
        true
    }

    /// The keys of templates that are meant.
    pub(super) fn keys(&self, meant: impl Fn(&TemplateKey) -> bool) -> BTreeSet<Arc<TemplateKey>> {
        let keys = self.templates.iter().map(|template| &template.key);
        keys.filter(|key| meant(key)).cloned().collect()
    }
}

fn defined(definition: &Value) -> ApiResource {
    let part = |field: &str| text(definition, &["spec", "names", field]).to_owned();
    ApiResource { name: part("plural"), kind: part("kind") }
}
