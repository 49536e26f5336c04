//! Requests to the API group `longshore.io/v1alpha1`, whose answers the control plane computes with the rights of the
//! user: for users who may not read everything. Other users read lists and compute locally, as with servers without
//! that group.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use controllers::rest::{Collection, Error, Path};
use decide::TemplateKey;
use decide::progress::Progress;
use decide::snapshot::Change;
use http::Method;
use plane::extension::{
    API_VERSION, DELIVERY_REVIEW_TEMPLATES_MAX, DELIVERY_REVIEWS, EXPLANATIONS, PLANS, Planned, REPORTS,
    explanation_name,
};
use plane::reports::Explanation;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Hint;
use crate::connection::Control;
use crate::kinds::Target;

/// How often the server is asked that has just started, and how long is waited in between.
const RETRIES_MAX: usize = 50;
const RETRY_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);

#[derive(Deserialize)]
struct Answer<T> {
    status: T,
}

/// A report, and whether it is about the namespace of the connection only.
pub struct Reported<T> {
    /// What it says.
    pub report: T,
    /// It is about one namespace.
    pub is_of_namespace: bool,
}

impl Control {
    /// Whether the control plane has to compute answers: it does so, and this user may not read everything.
    pub async fn computes(&self) -> Result<bool> {
        let group: Option<Value> = self
            .rest
            .get(&Path::of_version(API_VERSION))
            .await
            .context("discover the API group of the control plane")?;
        if group.is_none() {
            return Ok(false);
        }
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": { "verb": "list", "group": "*", "resource": "*" } },
        });
        let path = Path::fixed("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
        let answer: Value = self
            .rest
            .send(Method::POST, &path, "application/json", Some(&review))
            .await
            .context("read the access rights of this user")?;
        Ok(answer["status"]["allowed"] != true)
    }

    /// What changes would do.
    pub async fn computed_plan(&self, changes: &[Change]) -> Result<Planned> {
        let sent: Vec<Value> = changes.iter().map(sent).collect();
        let body = json!({ "apiVersion": API_VERSION, "kind": "Plan", "spec": { "changes": sent } });
        let path = Collection::new(API_VERSION, PLANS, &namespace_of(changes)).path().clone();
        self.ask(Method::POST, &path, Some(&body)).await.map_err(|error| refused(error, "plan the changes"))
    }

    /// Why a template is where it is.
    pub async fn computed_explanation(&self, target: &Target, cluster: Option<&str>) -> Result<Explanation> {
        let name = explanation_name(target.kind.group(), &target.kind.plural, &target.name);
        let mut path = Collection::new(API_VERSION, EXPLANATIONS, &target.namespace).object(&name);
        if let Some(cluster) = cluster {
            path = path.with("cluster", cluster);
        }
        let doing = format!("explain {}", target.printed());
        self.ask(Method::GET, &path, None).await.map_err(|error| refused(error, &doing))
    }

    /// How far templates are on their way to members.
    pub async fn computed_progress(&self, templates: &BTreeSet<Arc<TemplateKey>>) -> Result<Vec<Progress>> {
        let mut by_namespace: BTreeMap<&str, Vec<&TemplateKey>> = BTreeMap::new();
        for key in templates {
            by_namespace.entry(&key.namespace).or_default().push(key);
        }
        let mut all = Vec::new();
        for (namespace, keys) in by_namespace {
            let path = Collection::new(API_VERSION, DELIVERY_REVIEWS, namespace).path().clone();
            for some in keys.chunks(DELIVERY_REVIEW_TEMPLATES_MAX) {
                let body = json!({
                    "apiVersion": API_VERSION, "kind": "DeliveryReview", "spec": { "templates": some },
                });
                let answer: Vec<Progress> = self
                    .ask(Method::POST, &path, Some(&body))
                    .await
                    .map_err(|error| refused(error, "read the progress of the templates"))?;
                all.extend(answer);
            }
        }
        Ok(all)
    }

    /// A report about the cluster or, for users without rights there, about the namespace of the connection.
    pub async fn computed_report<T: DeserializeOwned>(&self, name: &str) -> Result<Reported<T>> {
        let path = |namespace: &str| Collection::new(API_VERSION, REPORTS, namespace).object(name);
        match self.ask(Method::GET, &path(""), None).await {
            Ok(report) => return Ok(Reported { report, is_of_namespace: false }),
            Err(Error::Refused { code: 403, .. }) => {}
            Err(error) => return Err(refused(error, "read the status report")),
        }
        let report = self.ask(Method::GET, &path(&self.namespace), None).await;
        let report = report.map_err(|error| refused(error, "read the status report"))?;
        Ok(Reported { report, is_of_namespace: true })
    }

    /// Asks, and again if the control plane has just started and does not know everything yet.
    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &Path,
        body: Option<&Value>,
    ) -> Result<T, Error> {
        for _ in 1..RETRIES_MAX {
            match self.rest.send(method.clone(), path, "application/json", body).await {
                Err(Error::Refused { code: 503, .. }) => tokio::time::sleep(RETRY_INTERVAL).await,
                answer => return answer.map(|answer: Answer<T>| answer.status),
            }
        }
        self.rest.send(method, path, "application/json", body).await.map(|answer: Answer<T>| answer.status)
    }
}

/// A change as the group takes it.
fn sent(change: &Change) -> Value {
    match change {
        Change::Put(object) => json!({ "put": **object }),
        Change::Delete { api_version, kind, namespace, name } => json!({
            "delete": { "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name },
        }),
    }
}

/// The namespace that all changes are in; empty if there is none.
fn namespace_of(changes: &[Change]) -> String {
    let namespace = |change: &Change| match change {
        Change::Put(object) => {
            object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        Change::Delete { namespace, .. } => namespace.clone(),
    };
    let mut all = changes.iter().map(namespace);
    let first = all.next().unwrap_or_default();
    if all.all(|next| next == first) { first } else { String::new() }
}

fn refused(error: Error, doing: &str) -> anyhow::Error {
    let hint = match &error {
        Error::Refused { code: 403, .. } => {
            "choose a namespace in which you have rights with -n; the role longshore:tenant, bound there, is \
             enough: see docs/security.md"
        }
        Error::NotFound { .. } => {
            "check the name and the namespace (-n); `longshore status` lists what is propagated"
        }
        _ => "nothing was changed; try again in a moment",
    };
    anyhow::Error::new(Hint(hint.to_owned())).context(error).context(doing.to_owned())
}
