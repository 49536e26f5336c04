//! The verbs on resources: one file per verb. This one describes a request on a resource and dispatches it to its
//! verb.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response};

use crate::audit::Notes;
use crate::authn::Identity;
use crate::body::Body;
use crate::content::Accepted;
use crate::engine::Engine;
use crate::registry::Resource;
use crate::request::{Query, ResourcePath};
use apimachinery::error::ApiError;

mod answer;
mod continuation;
mod create;
pub(crate) mod definitions;
mod delete;
mod draft;
mod list;
mod patch;
mod reviews;
mod scale;
mod selection;
mod settle;
mod shapes;
mod update;
mod watch;

pub(crate) use answer::{Answer, document_response, error_response};
pub(crate) use continuation::Continuation;
pub(crate) use delete::{FOREGROUND, ORPHAN};
pub(crate) use draft::{Draft, type_name};

/// What a client sends along: what to do, and the bytes to do it with.
pub(crate) struct Sent {
    pub method: Method,
    /// `Content-Type` without its parameters, empty where the client names none.
    pub media_type: String,
    pub body: Bytes,
}

/// One request on one resource.
#[derive(Clone)]
pub(crate) struct Call {
    pub resource: Arc<Resource>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
    pub query: Query,
    pub accepted: Accepted,
    pub identity: Identity,
    pub user_agent: String,
    /// The kubectl command that sends it, such as `kubectl logs`; empty for other clients.
    pub command: String,
    /// What is to be written down about the request.
    pub notes: Notes,
}

impl Call {
    /// The key of the named object. Only called where the path has a name.
    pub fn key(&self) -> String {
        self.resource.key(self.namespace.as_deref(), self.name())
    }

    /// The object's name, empty on collections.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The subresource, empty for the object itself.
    pub fn part(&self) -> &str {
        self.subresource.as_deref().unwrap_or_default()
    }
}

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
                let notes = Notes::default();
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
                    notes,
                })
            }
            false => Err(ApiError::no_such_path()),
        }
    }

    /// Dispatches a request to its verb.
    pub async fn perform(self: &Arc<Self>, sent: &Sent, call: Call) -> Result<Response<Body>, ApiError> {
        let answer = match (call.resource.is_stored(), call.name.is_some(), call.part()) {
            // A review is no object: it has no columns and no metadata.
            (false, _, _) if !call.accepted.plain => {
                Err(ApiError::not_acceptable("application/json, application/yaml"))
            }
            (false, _, _) if call.resource.is_computed => self.compute(sent, &call).await,
            (false, _, _) => self.review(sent, &call),
            (true, false, _) => self.on_collection(sent, &call).await,
            (true, true, "") => self.on_object(sent, &call).await,
            (true, true, _) => self.on_part(sent, &call).await,
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
                Err(everywhere_is_nowhere(call))
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

    async fn on_part(self: &Arc<Self>, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        let part = call.part();
        let Some(known) = call.resource.subresources.iter().find(|known| &*known.name == part) else {
            return Err(part_is_elsewhere(call));
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

    async fn get(&self, call: &Call) -> Result<Answer, ApiError> {
        let entry = self.read(&call.resource, &call.key(), call.name())?;
        match call.resource.serves_as_stored(entry.revision) {
            true => Ok(Answer::stored(http::StatusCode::OK, entry.value)),
            false => Ok(Answer::served(self.served_entry(&call.resource, &entry).await?)),
        }
    }
}

/// Objects are made and collections deleted inside of a namespace. Kubernetes refuses built-in and custom
/// kinds at different doors.
fn everywhere_is_nowhere(call: &Call) -> ApiError {
    match call.resource.custom {
        None => ApiError::method_not_allowed(),
        Some(_) => ApiError::no_such_path(),
    }
}

/// Logs and shells belong to clusters that run pods. Say where to look instead of "not found".
fn part_is_elsewhere(call: &Call) -> ApiError {
    match call.part().split('/').next().unwrap_or_default() {
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
