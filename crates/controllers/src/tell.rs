//! What users are told: Kubernetes events about Works, templates and clusters. The same news about the same
//! object is one event that counts. News that cannot be written are dropped; nobody waits for them.

use std::hash::{DefaultHasher, Hash, Hasher};

use api::ObjectMeta;
use serde_json::{Value, json};

use crate::ctx::Ctx;
use crate::rest::{Collection, Error};
use crate::runtime::{Next, Priority};

/// Which object news are about.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct About {
    /// `group/version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Unique over time.
    pub uid: String,
}

impl About {
    /// An object of one of Karmada's kinds.
    pub fn of(kind: &api::kinds::Kind, metadata: &ObjectMeta) -> Self {
        Self {
            api_version: kind.api_version(),
            kind: kind.kind.to_owned(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
        }
    }
}

/// Whether news are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tone {
    /// As it should be.
    Normal,
    /// Somebody should look.
    Warning,
}

/// One piece of news.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct News {
    /// About what.
    pub about: About,
    /// Good or bad.
    pub tone: Tone,
    /// For programs.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// The controller that tells.
    pub source: &'static str,
}

impl Ctx {
    /// Tells users, in its own time.
    pub fn announce(&self, news: News) {
        self.queues.news.add(news, Priority::Resync);
    }
}

/// Writes one piece of news, or counts it once more.
pub async fn reconcile(ctx: &Ctx, news: &News) -> Result<Next, Error> {
    match write(ctx, news).await {
        // Somebody counted at the same time: look again.
        Err(error @ Error::Conflict { .. }) => Err(error),
        Err(error) => {
            tracing::debug!(%error, reason = news.reason, "news are dropped");
            Ok(Next::Wait)
        }
        Ok(()) => Ok(Next::Wait),
    }
}

async fn write(ctx: &Ctx, news: &News) -> Result<(), Error> {
    let namespace = match news.about.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    let events = Collection::new("v1", "events", namespace);
    let name = name(news);
    let now = (ctx.now)().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let Some(before) = ctx.control.get::<Value>(&events.object(&name)).await? else {
        ctx.control.create(&events, &event(news, namespace, &name, &now)).await?;
        return Ok(());
    };
    let patch = json!({
        "metadata": { "resourceVersion": before["metadata"]["resourceVersion"] },
        "count": before["count"].as_i64().unwrap_or(1).saturating_add(1),
        "lastTimestamp": now,
    });
    ctx.control.merge(&events.object(&name), &patch).await?;
    Ok(())
}

/// The same for the same news, so that they find each other.
fn name(news: &News) -> String {
    let mut hasher = DefaultHasher::new();
    news.hash(&mut hasher);
    format!("{}.{:016x}", news.about.name.replace(':', "."), hasher.finish())
}

fn event(news: &News, namespace: &str, name: &str, now: &str) -> Value {
    let about = &news.about;
    let mut object = json!({ "apiVersion": about.api_version, "kind": about.kind, "name": about.name });
    for (field, value) in [("namespace", &about.namespace), ("uid", &about.uid)] {
        if !value.is_empty() {
            object[field] = value.as_str().into();
        }
    }
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": object,
        "type": match news.tone { Tone::Normal => "Normal", Tone::Warning => "Warning" },
        "reason": news.reason,
        "message": news.message,
        "source": { "component": news.source },
        "reportingComponent": news.source,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    })
}
