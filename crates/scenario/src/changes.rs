//! Detects whether anything was written to live API servers since the last poll, by the revision of the store: one
//! small request each, instead of one for every object. Knows no objects.

use controllers::rest::Path;
use futures::future::try_join_all;
use serde_json::Value;

use crate::environment::Environment;
use crate::error::PlayError;

/// The `resourceVersion` of any list is the revision of the whole store.
const ANYTHING: &str = "/api/v1/namespaces";

/// How far all stores were at the last look.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangeDetector(Vec<String>);

impl ChangeDetector {
    /// How far they are.
    pub async fn now(environment: &Environment) -> Result<Self, PlayError> {
        let members = environment.members();
        let places = std::iter::once(None).chain(members.iter().map(|member| Some(member.as_str())));
        let looks = places.map(|place| async move {
            let list = environment
                .place(place)?
                .fetch(&Path::fixed(ANYTHING).with("limit", "1"))
                .await?
                .unwrap_or_default();
            let revision = list.pointer("/metadata/resourceVersion").and_then(Value::as_str);
            Ok(revision.unwrap_or_default().to_owned())
        });
        Ok(Self(try_join_all(looks).await?))
    }

    /// Looks again; whether anything was written meanwhile.
    pub async fn has_changed(&mut self, environment: &Environment) -> Result<bool, PlayError> {
        let now = Self::now(environment).await?;
        let turned = now != *self;
        *self = now;
        Ok(turned)
    }
}
