//! One request on one resource, as everything behind the router sees it: Kubernetes' request info with its resource
//! looked up.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;

use crate::audit::AuditAnnotations;
use crate::authn::Identity;
use crate::http::Query;
use crate::http::content::Accepted;
use crate::registry::Resource;

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
    pub audit_annotations: AuditAnnotations,
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
    pub fn subresource(&self) -> &str {
        self.subresource.as_deref().unwrap_or_default()
    }

    /// The same request on one object of the collection.
    pub fn on_object(collection: &Self, namespace: Option<String>, name: String) -> Self {
        Self {
            resource: collection.resource.clone(),
            namespace,
            name: Some(name),
            subresource: None,
            query: collection.query.clone(),
            accepted: collection.accepted,
            identity: collection.identity.clone(),
            user_agent: collection.user_agent.clone(),
            command: collection.command.clone(),
            audit_annotations: collection.audit_annotations.clone(),
        }
    }
}
