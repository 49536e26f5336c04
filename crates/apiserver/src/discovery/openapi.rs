//! Cache of the OpenAPI documents: built on first request, invalidated when a definition changes.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;
use supervise::Recovered as _;

use crate::http::content::Language;
use crate::http::{Body, Query, document_response};
use crate::registry::Registry;

use apimachinery::error::ApiError;
use schema::kinds;
use schema::openapi::{self, Document, GroupVersion, Published};

/// Clients ask for `…v2@v1.0+protobuf`, which is no media type that Go can parse in an answer.
const SWAGGER_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The documents of one state of the registry.
#[derive(Default)]
pub(crate) struct OpenApiCache {
    /// Guards the documents; held while they are made, so that they are made once.
    documents: Mutex<Option<(Arc<Registry>, Arc<Documents>)>>,
}

#[derive(Default)]
struct Documents {
    v3: Vec<Document>,
    swagger: Bytes,
    swagger_protobuf: Bytes,
}

impl Documents {
    fn of(registry: &Registry) -> Self {
        let mut definitions: Vec<&Value> = Vec::new();
        for resource in registry.all() {
            if let Some(definition) = &resource.custom
                && !definitions.contains(&&definition.object)
            {
                definitions.push(&definition.object);
            }
        }
        let published = kinds::all().iter().map(Published::from);
        let published: Vec<Published<'_>> =
            published.chain(definitions.into_iter().flat_map(Published::of_definition)).collect();
        let groups: Vec<GroupVersion<'_>> = registry
            .groups()
            .flat_map(|(group, members)| {
                members.versions().iter().map(move |version| (group, &*version.name))
            })
            .map(|(group, version)| {
                let own = published.iter().filter(|kind| kind.group == group && kind.version == version);
                GroupVersion { group, version, kinds: own.cloned().collect() }
            })
            .collect();
        let swagger = openapi::swagger(&groups);
        Self {
            v3: groups.iter().map(openapi::document).collect(),
            swagger_protobuf: openapi::swagger_protobuf(&swagger).into(),
            swagger: swagger.to_string().into(),
        }
    }
}

impl OpenApiCache {
    fn documents(&self, registry: Arc<Registry>) -> Arc<Documents> {
        let mut cached = self.documents.lock().recovered();
        if let Some((of, documents)) = &*cached
            && Arc::ptr_eq(of, &registry)
        {
            return documents.clone();
        }
        let documents = Arc::new(Documents::of(&registry));
        *cached = Some((registry, documents.clone()));
        documents
    }

    /// Answers a path below `/openapi`.
    pub fn answer(
        &self,
        registry: Arc<Registry>,
        parts: &Parts,
        path: &[&str],
    ) -> Result<Response<Body>, ApiError> {
        if !matches!(path, ["v2"] | ["v3", ..]) {
            return Err(ApiError::no_such_path());
        }
        let documents = self.documents(registry);
        match path {
            ["v2"] => Ok(documents.swagger(parts)),
            ["v3"] => Ok(document_response(&openapi::index(&documents.v3), Language::Json)),
            ["v3", rest @ ..] => documents.openapi_v3(parts, &rest.join("/")),
            _ => Err(ApiError::no_such_path()),
        }
    }
}

impl Documents {
    fn openapi_v3(&self, parts: &Parts, path: &str) -> Result<Response<Body>, ApiError> {
        let document = self.v3.iter().find(|document| document.path == path);
        let document = document.ok_or_else(ApiError::no_such_path)?;
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        // A client that kept an old address is sent to the current one, which it may keep for ever.
        if query.get("hash").is_some_and(|hash| hash != document.hash) {
            let current = format!("/openapi/v3/{path}?hash={}", document.hash);
            let mut response = Response::new(Body::full(""));
            *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
            let location = HeaderValue::from_str(&current).map_err(ApiError::internal)?;
            response.headers_mut().insert(header::LOCATION, location);
            return Ok(response);
        }
        let mut response = typed(document.body.clone(), "application/json");
        let etag = HeaderValue::from_str(&format!("\"{}\"", document.hash)).map_err(ApiError::internal)?;
        response.headers_mut().insert(header::ETAG, etag);
        if query.get("hash").is_some() {
            let lasting = HeaderValue::from_static("public, immutable");
            response.headers_mut().insert(header::CACHE_CONTROL, lasting);
        }
        Ok(response)
    }

    fn swagger(&self, parts: &Parts) -> Response<Body> {
        let accept =
            parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        match accept.contains("proto-openapi.spec.v2") {
            true => typed(self.swagger_protobuf.clone(), SWAGGER_PROTOBUF),
            false => typed(self.swagger.clone(), "application/json"),
        }
    }
}

fn typed(body: Bytes, media_type: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::full(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
