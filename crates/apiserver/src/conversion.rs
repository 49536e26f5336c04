//! Conversion webhooks (`spec.conversion` of a CustomResourceDefinition): converts custom objects between the version
//! that a client requests and the storage version. One call converts many objects.

use std::time::Duration;

use serde_json::{Value, json};
use store::{Entry, Revision, Store};

use crate::environment::{Random, uid};
use crate::registry::{Converter, Resource};
use crate::storage::{stored, text};
use crate::webhook_client;
use apimachinery::error::ApiError;
use merge::patch::unclassified;

mod review;

/// How long a webhook may take, as in kube-apiserver.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How much is converted at a time; an answer may be several times as large.
const BATCH_BYTES: usize = 512 * 1024;

/// Converts objects between the versions of their kinds.
pub(crate) struct Conversion {
    store: Store,
    random: Random,
}

impl Conversion {
    /// Finds webhooks by the Services in the store.
    pub fn new(store: Store, random: Random) -> Self {
        Self { store, random }
    }

    /// A stored object as this version shows it.
    pub async fn served(&self, resource: &Resource, object: Value) -> Result<Value, ApiError> {
        let mut served = self.served_all(resource, vec![(0, object)]).await?;
        served.pop().ok_or_else(|| ApiError::internal("one object was converted into none"))
    }

    /// The object of an entry as this version shows it.
    pub async fn served_entry(&self, resource: &Resource, entry: &Entry) -> Result<Value, ApiError> {
        let object = stored::parse(&entry.value);
        match resource.serves_as_stored(entry.revision) {
            true => Ok(object),
            false => self.served(resource, object).await,
        }
    }

    /// The objects of entries as this version shows them.
    pub async fn served_entries(
        &self,
        resource: &Resource,
        entries: &[Entry],
    ) -> Result<Vec<Value>, ApiError> {
        let objects = entries.iter().map(|entry| (entry.revision, stored::parse(&entry.value)));
        self.served_all(resource, objects.collect()).await
    }

    /// Stored objects, with the revisions they were written at, as this version shows them.
    pub async fn served_all(
        &self,
        resource: &Resource,
        objects: Vec<(Revision, Value)>,
    ) -> Result<Vec<Value>, ApiError> {
        let Some(converter) = resource.converter() else {
            let serve = |(revision, object)| match resource.serves_as_stored(revision) {
                true => object,
                false => resource.serve(object),
            };
            return Ok(objects.into_iter().map(serve).collect());
        };
        let objects = objects.into_iter().map(|(_, object)| object).collect();
        let mut objects = self.converted(converter, &resource.api_version(), objects).await?;
        objects.iter_mut().for_each(|object| resource.fit_to_schema(object));
        Ok(objects)
    }

    /// An object of this version as it is stored.
    pub async fn as_stored(&self, resource: &Resource, object: Value) -> Result<Value, ApiError> {
        let Some(converter) = resource.converter() else { return Ok(resource.store(object)) };
        let mut stored = self.converted(converter, &resource.stored_api_version, vec![object]).await?;
        stored.pop().ok_or_else(|| ApiError::internal("one object was converted into none"))
    }

    /// Has those objects converted that are in another version.
    async fn converted(
        &self,
        converter: &Converter,
        wanted: &str,
        mut objects: Vec<Value>,
    ) -> Result<Vec<Value>, ApiError> {
        let is_other = |object: &Value| text(object, "/apiVersion") != wanted;
        let places: Vec<usize> = (0..objects.len()).filter(|place| is_other(&objects[*place])).collect();
        let mut rest = places.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let is_enough = |place: &usize| {
                bytes += objects[*place].to_string().len();
                bytes > BATCH_BYTES
            };
            let count = rest.iter().position(is_enough).unwrap_or(rest.len()).max(1);
            let (batch, later) = rest.split_at(count);
            let sent: Vec<&Value> = batch.iter().map(|place| &objects[*place]).collect();
            let answered = self.call_converter(converter, wanted, &sent).await.map_err(unclassified)?;
            for (place, object) in batch.iter().zip(answered) {
                objects[*place] = object;
            }
            rest = later;
        }
        Ok(objects)
    }

    async fn call_converter(
        &self,
        converter: &Converter,
        wanted: &str,
        objects: &[&Value],
    ) -> Result<Vec<Value>, String> {
        let kind = objects.first().map(|object| qualified_kind(object)).unwrap_or_default();
        let failed = |why: String| format!("conversion webhook for {kind} failed: {why}");
        let uid = uid(&self.random);
        let question = json!({
            "kind": "ConversionReview", "apiVersion": converter.review,
            "request": { "uid": uid, "desiredAPIVersion": wanted, "objects": objects },
        });
        let called = webhook_client::call(&converter.address, &self.store, question.to_string());
        let bytes = tokio::time::timeout(TIMEOUT, called).await;
        let bytes = bytes.unwrap_or_else(|_| Err("context deadline exceeded".to_owned())).map_err(failed)?;
        let converted = review::objects(&bytes, converter.review, &uid).map_err(failed)?;
        if converted.len() != objects.len() {
            let (got, sent) = (converted.len(), objects.len());
            return Err(format!("conversion webhook for {kind} returned {got} objects, expected {sent}"));
        }
        let restored = objects.iter().zip(converted);
        let restored = restored.map(|(original, converted)| review::restored(original, converted, wanted));
        restored
            .collect::<Result<_, _>>()
            .map_err(|why| format!("conversion webhook for {kind} returned invalid {why}"))
    }
}

/// `ex.com/v1, Kind=Thing`
fn qualified_kind(object: &Value) -> String {
    format!("{}, Kind={}", text(object, "/apiVersion"), text(object, "/kind"))
}
