//! Whether anything at all was written to live API servers since the last look: one small request each, instead of one
//! for every object that somebody might look at. Knows no objects.

use controllers::rest::Path;
use futures::future::try_join_all;
use serde_json::Value;

use crate::ground::{Ground, Trouble};

/// A list of anything tells the revision of the whole store.
const ANYTHING: &str = "/api/v1/namespaces";

/// How far all stores were at the last look.
#[derive(Debug, PartialEq, Eq)]
pub struct Tide(Vec<String>);

impl Tide {
    /// How far they are.
    pub async fn now(ground: &Ground) -> Result<Self, Trouble> {
        let members = ground.members();
        let places = std::iter::once(None).chain(members.iter().map(|member| Some(member.as_str())));
        let looks = places.map(|place| async move {
            let list = ground
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
    pub async fn has_turned(&mut self, ground: &Ground) -> Result<bool, Trouble> {
        let now = Self::now(ground).await?;
        let turned = now != *self;
        *self = now;
        Ok(turned)
    }
}
