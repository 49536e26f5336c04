//! Selection by namespace, name, labels and fields, for list, watch and deletecollection.

use crate::call::Call;
use crate::engine::Engine;
use crate::registry::Resource;
use crate::run_blocking::run_blocking;
use crate::storage::stored;
use apimachinery::error::ApiError;
use apimachinery::selector::{FieldSelector, LabelSelector};

/// Selectors longer than this are parsed with `run_blocking`.
const LONG_BYTES: usize = 1_024;

/// The objects a request is about: a range of keys and two selectors.
#[derive(Debug)]
pub(crate) struct Selection {
    /// Keys start with this: a namespace, or nothing.
    pub prefix: String,
    /// The one key that can match, where the request names an object.
    pub only: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    /// Reads the selectors of a request.
    pub fn parse(call: &Call) -> Result<Self, ApiError> {
        let text = |key| call.query.get(key).unwrap_or_default();
        let labels = || LabelSelector::parse(text("labelSelector"));
        let fields = || FieldSelector::parse(text("fieldSelector"), &call.resource.selectable);
        let is_long = text("labelSelector").len() + text("fieldSelector").len() > LONG_BYTES;
        let (labels, fields) =
            if is_long { run_blocking(|| (labels(), fields())) } else { (labels(), fields()) };
        let (labels, fields) = (labels?, fields?);
        let namespaced = call.resource.namespaced;
        let namespace = call.namespace.as_deref().or_else(|| fields.exact("metadata.namespace"));
        let namespace = namespace.filter(|_| namespaced);
        let name = call.name.as_deref().or_else(|| fields.exact("metadata.name"));
        let only = match (namespaced, namespace, name) {
            (true, Some(namespace), Some(name)) => Some(format!("{namespace}/{name}")),
            (false, _, Some(name)) => Some(name.to_owned()),
            _ => None,
        };
        let prefix = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
        Ok(Self { prefix, only, labels, fields })
    }

    /// Whether every object in the range matches.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether a stored object matches.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        (self.labels.is_everything() || self.labels.matches_raw(bytes))
            && (self.fields.is_everything() || self.fields.matches_raw(bytes))
    }
}

impl Engine {
    /// Which stored objects match, by what the version of the resource shows of them: a webhook may make labels and
    /// fields that are not stored.
    pub async fn matching(
        &self,
        resource: &Resource,
        selection: &Selection,
        stored: &[&[u8]],
    ) -> Result<Vec<bool>, ApiError> {
        if resource.converter().is_none() || selection.is_everything() {
            return Ok(stored.iter().map(|bytes| selection.matches(bytes)).collect());
        }
        let objects = stored.iter().map(|bytes| (0, stored::parse(bytes))).collect();
        let served = self.conversion.served_all(resource, objects).await?;
        Ok(served.iter().map(|object| selection.matches(object.to_string().as_bytes())).collect())
    }
}
