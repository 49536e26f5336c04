//! Requests for resources that an extension computes, and for pods that run elsewhere.

use http::{Method, StatusCode};
use serde_json::Value;

use crate::call::{Call, Sent};
use crate::engine::Engine;
use crate::extension::{Caller, PodQuery, Request, Stored};
use crate::http::content;
use crate::run_blocking::run_blocking;
use crate::verbs::Answer;
use apimachinery::error::ApiError;

/// The commands that wait for a pod of a workload, for up to a minute.
const WAITING_COMMANDS: [&str; 4] =
    ["kubectl logs", "kubectl exec", "kubectl attach", "kubectl port-forward"];

impl Engine {
    /// Why a kubectl command would wait in vain for a pod of a workload: none runs here. Other clients, and namespaces
    /// in which there are pods as templates, are answered as ever.
    pub fn pods_elsewhere(&self, call: &Call) -> Option<ApiError> {
        let served = self.extension.as_ref()?;
        let is_meant = &*call.resource.plural == "pods"
            && call.resource.group.is_empty()
            && WAITING_COMMANDS.contains(&call.command.as_str());
        let (namespace, selector) = (call.namespace.as_deref()?, call.query.get("labelSelector")?);
        if !is_meant || call.identity.is_internal {
            return None;
        }
        let prefix = format!("{namespace}/");
        let range = store::Range { prefix: &prefix, limit: Some(1), ..store::Range::default() };
        let page = self.store.range(&call.resource.table, range).ok()?;
        let query = PodQuery { namespace, selector, command: &call.command };
        page.entries.is_empty().then(|| {
            let message = run_blocking(|| (served.extension.pods)(&query));
            ApiError { message, ..ApiError::not_found(call.resource.subject("")) }
        })
    }

    /// Answers a request for a computed resource.
    pub async fn compute(&self, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        let Some(served) = &self.extension else { return Err(ApiError::no_such_path()) };
        let (verb, status) = match (&sent.method, call.name()) {
            _ if call.query.flag("watch") || !call.subresource().is_empty() => {
                return Err(ApiError::method_not_allowed());
            }
            (&Method::POST, "") => ("create", StatusCode::CREATED),
            (&Method::GET, name) if !name.is_empty() => ("get", StatusCode::OK),
            _ => return Err(ApiError::method_not_allowed()),
        };
        if !call.resource.has_verb(verb) {
            return Err(ApiError::method_not_allowed());
        }
        let body = match verb {
            "create" => content::decode_object(&sent.media_type, &sent.body)?,
            _ => Value::Null,
        };
        let request = Request {
            verb,
            resource: &call.resource.plural,
            namespace: call.namespace.as_deref().unwrap_or_default(),
            name: call.name(),
            query: call.query.pairs().collect(),
            body,
            caller: Caller { rbac: &self.rbac, registry: &self.registry, identity: &call.identity },
            stored: Stored { store: &self.store, registry: &self.registry },
        };
        let _permit = served.in_flight.acquire().await.map_err(ApiError::internal)?;
        let answered = run_blocking(|| (served.extension.answer)(&request))?;
        Ok(Answer::document(status, answered))
    }
}
