//! Non-resource paths: health, version, metrics, discovery and OpenAPI.

use http::request::Parts;
use http::{HeaderMap, Method, Response};
use serde_json::{Value, json};

use crate::discovery;
use crate::engine::Engine;
use crate::http::content::Language;
use crate::http::{Body, document_response};
use crate::metrics;
use apimachinery::error::ApiError;

use super::health;

/// The Kubernetes version whose API this server speaks.
const SPOKEN_VERSION: (&str, &str, &str) = ("1", "35", "v1.35.4+longshore");

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

impl Engine {
    /// Answers a path that is no resource.
    pub fn serve_non_resource_path(
        &self,
        parts: &Parts,
        segments: &[String],
    ) -> Result<Response<Body>, ApiError> {
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Err(match segments.first().map(String::as_str) {
                Some("api" | "apis" | "openapi" | "version") => ApiError::method_not_allowed(),
                _ => ApiError::no_such_path(),
            });
        }
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        match words.as_slice() {
            [probe @ ("livez" | "readyz" | "healthz"), checks @ ..] => {
                let query = parts.uri.query().unwrap_or_default();
                let state = health::State {
                    writes_fail: self.store.write_failure(),
                    needs_restart: self.store.gave_up().is_some(),
                    storage: self.storage.health(),
                    failure: self.supervision.failure(),
                };
                health::answer(probe, checks, query, &state)
            }
            ["version"] => Ok(json_response(&version())),
            ["metrics"] => Ok(self.metrics_response()),
            [".well-known", "openid-configuration"] => Ok(json_response(&self.issuer_document())),
            ["openid", "v1", "jwks"] => Ok(json_response(&self.authenticator.keys.key_set())),
            ["openapi", rest @ ..] => self.openapi.answer(self.registry.load_full(), parts, rest),
            _ => self.discovery(&parts.headers, &words),
        }
    }

    fn discovery(&self, headers: &HeaderMap, words: &[&str]) -> Result<Response<Body>, ApiError> {
        let registry = self.registry.load();
        let aggregated = wants_aggregated(headers);
        let document = match words {
            [] => json!({ "paths": self.paths() }),
            ["api"] if aggregated => return Ok(aggregated_response(&discovery::aggregated(&registry, true))),
            ["apis"] if aggregated => {
                return Ok(aggregated_response(&discovery::aggregated(&registry, false)));
            }
            ["api"] => discovery::core_versions(),
            ["apis"] => discovery::groups(&registry),
            ["api", version] => registry
                .version("", version)
                .map(|found| discovery::resources("", found))
                .ok_or_else(ApiError::no_such_path)?,
            ["apis", name] => registry
                .group(name)
                .map(|found| discovery::group(name, found))
                .ok_or_else(ApiError::no_such_path)?,
            ["apis", group, version] => registry
                .version(group, version)
                .map(|found| discovery::resources(group, found))
                .ok_or_else(ApiError::no_such_path)?,
            _ => return Err(ApiError::no_such_path()),
        };
        Ok(json_response(&document))
    }

    /// `/metrics`: the counters of the server and of the embedding process.
    fn metrics_response(&self) -> Response<Body> {
        let mut text = String::new();
        self.metrics.print(&mut text, &self.store.stats());
        self.storage.print_metrics(&mut text);
        if let Some(audit) = &self.audit {
            metrics::print_dropped_refusals(&mut text, audit.dropped_refusals());
        }
        metrics::print_writes(&mut text, self.store.write_failure().is_some());
        metrics::print_panics(&mut text, &self.supervision.panics());
        let mut response = Response::new(Body::full(text));
        let media_type = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(http::header::CONTENT_TYPE, media_type);
        response
    }

    /// OIDC discovery: where other servers that verify service account tokens find the keys.
    fn issuer_document(&self) -> Value {
        let issuer = self.authenticator.keys.issuer();
        json!({
            "issuer": issuer,
            "jwks_uri": format!("{issuer}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }

    fn paths(&self) -> Vec<String> {
        let registry = self.registry.load();
        let mut paths: Vec<String> = [
            "/.well-known/openid-configuration",
            "/api",
            "/api/v1",
            "/apis",
            "/healthz",
            "/livez",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/openid/v1/jwks",
            "/readyz",
            "/version",
        ]
        .map(str::to_owned)
        .to_vec();
        for (name, group) in registry.groups().filter(|(name, _)| !name.is_empty()) {
            paths.push(format!("/apis/{name}"));
            paths.extend(group.versions().iter().map(|version| format!("/apis/{name}/{}", version.name)));
        }
        paths.sort();
        paths
    }
}

fn wants_aggregated(headers: &HeaderMap) -> bool {
    let accept = headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|entry| {
        let entry = entry.replace(' ', "");
        entry.starts_with("application/json;")
            && entry.contains("g=apidiscovery.k8s.io")
            && entry.contains("as=APIGroupDiscoveryList")
            && entry.split(';').any(|part| part == "v=v2")
    })
}

fn aggregated_response(document: &Value) -> Response<Body> {
    let mut response = json_response(document);
    let media_type = http::HeaderValue::from_static(AGGREGATED);
    response.headers_mut().insert(http::header::CONTENT_TYPE, media_type);
    response
}

fn json_response(document: &Value) -> Response<Body> {
    document_response(document, Language::Json)
}

fn version() -> Value {
    let (major, minor, full) = SPOKEN_VERSION;
    json!({
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": minor,
        "gitVersion": full,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_architecture()),
    })
}

/// The processor by the name that clients compare with their own.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
