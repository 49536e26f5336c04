//! Dispatches a request on a resource to its verb.

use std::sync::Arc;

use http::{Method, Response};

use crate::audit::AuditAnnotations;
use crate::authn::Identity;
use crate::call::{Call, Sent};
use crate::engine::Engine;
use crate::http::content::Accepted;
use crate::http::{Body, Query, ResourcePath};
use crate::verbs::Answer;
use apimachinery::error::ApiError;

impl Engine {
    /// Finds the resource of a path and checks that the path fits its scope.
    pub fn call(
        &self,
        path: ResourcePath,
        query: Query,
        accepted: Accepted,
        identity: Identity,
        user_agent: String,
    ) -> Result<Call, ApiError> {
        let resource = self.resource(&path.group, &path.version, &path.resource)?;
        let fits = match (resource.namespaced, &path.namespace, &path.name) {
            (true, Some(_), _) | (false, None, _) => true,
            // A namespaced collection can be read over all namespaces, and reviews are posted that way.
            (true, None, name) => name.is_none() || resource.is_computed,
            (false, Some(_), _) => false,
        };
        let ResourcePath { namespace, name, subresource, .. } = path;
        match fits {
            true => {
                let audit_annotations = AuditAnnotations::default();
                Ok(Call {
                    resource,
                    namespace,
                    name,
                    subresource,
                    query,
                    accepted,
                    identity,
                    user_agent,
                    command: String::new(),
                    audit_annotations,
                })
            }
            false => Err(ApiError::no_such_path()),
        }
    }

    /// Dispatches a request to its verb.
    pub async fn dispatch(self: &Arc<Self>, sent: &Sent, call: Call) -> Result<Response<Body>, ApiError> {
        let answer = match (call.resource.is_stored(), call.name.is_some(), call.subresource()) {
            // A review is no object: it has no columns and no metadata.
            (false, _, _) if !call.accepted.plain => {
                Err(ApiError::not_acceptable("application/json, application/yaml"))
            }
            (false, _, _) if call.resource.is_computed => self.compute(sent, &call).await,
            (false, _, _) => self.review(sent, &call),
            (true, false, _) => self.on_collection(sent, &call).await,
            (true, true, "") => self.on_object(sent, &call).await,
            (true, true, _) => self.on_subresource(sent, &call).await,
        };
        let answer = self.in_served_version(&call, answer?).await?;
        let deprecation = match call.resource.custom_version() {
            Some((_, version)) => version.deprecation.clone(),
            None => builtin::deprecation(&call.resource.group, &call.resource.kind),
        };
        Ok(self.respond(&call, answer.with_warnings(deprecation.into_iter().collect())))
    }

    async fn on_collection(self: &Arc<Self>, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        if let Some(refused) = self.pods_elsewhere(call).filter(|_| sent.method == Method::GET) {
            return Err(refused);
        }
        match sent.method {
            Method::GET if call.query.flag("watch") => self.watch(call.clone()),
            Method::GET => self.list(call).await,
            Method::POST | Method::DELETE if call.resource.namespaced && call.namespace.is_none() => {
                Err(namespace_required(call))
            }
            Method::POST => self.create(sent, call).await,
            Method::DELETE if call.resource.has_verb("deletecollection") => {
                self.delete_collection(sent, call).await
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    async fn on_object(self: &Arc<Self>, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        match sent.method {
            Method::GET if call.query.flag("watch") => self.watch(call.clone()),
            Method::GET => self.get(call).await,
            Method::PUT => self.update(sent, call).await,
            Method::PATCH => self.patch(sent, call).await,
            Method::DELETE => self.delete(sent, call).await,
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    async fn on_subresource(self: &Arc<Self>, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        let part = call.subresource();
        let Some(known) = call.resource.subresources.iter().find(|known| &*known.name == part) else {
            return Err(subresource_not_served(call));
        };
        match (&*known.name, &sent.method) {
            ("scale", _) => self.scale(sent, call).await,
            ("status" | "approval" | "finalize", &Method::GET) => self.get(call).await,
            ("status" | "approval" | "finalize", &Method::PUT) => self.update(sent, call).await,
            ("status" | "approval", &Method::PATCH) => self.patch(sent, call).await,
            ("token", &Method::POST) => self.request_token(sent, call),
            ("eviction", &Method::POST) => self.evict(sent, call).await,
            ("binding", &Method::POST) => self.bind(sent, call).await,
            _ => Err(ApiError::method_not_allowed()),
        }
    }
}

/// The error for a create or deletecollection without a namespace: Kubernetes answers 405 for built-in kinds and 404 for
/// custom ones.
fn namespace_required(call: &Call) -> ApiError {
    match call.resource.custom {
        None => ApiError::method_not_allowed(),
        Some(_) => ApiError::no_such_path(),
    }
}

/// The error for a subresource that is not served; for logs and shells it says where pods run.
fn subresource_not_served(call: &Call) -> ApiError {
    match call.subresource().split('/').next().unwrap_or_default() {
        _ if call.resource.custom.is_some() => ApiError::not_found(call.resource.subject(call.name())),
        word @ ("log" | "exec" | "attach" | "portforward" | "proxy" | "ephemeralcontainers" | "resize") => {
            let message = format!(
                "{word} is not served here: no pod runs on this API server. \
                 Ask the cluster that runs the pod, for example with kubectl --context MEMBER"
            );
            ApiError { message, ..ApiError::method_not_allowed() }
        }
        _ => ApiError::no_such_path(),
    }
}
