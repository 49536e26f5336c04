//! Encodes responses: status, warnings, and the object in the format, version and representation that the client
//! accepts.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use serde_json::Value;

use crate::call::Call;
use crate::engine::Engine;
use crate::http::content::{Language, Shape};
use crate::http::{Body, document_response, error_response, typed};
use crate::storage::stored;
use apimachinery::error::ApiError;

/// What a verb answers, before it is put into the client's language.
pub(crate) struct Answer {
    pub status: StatusCode,
    pub content: Content,
    pub warnings: Vec<String>,
}

pub(crate) enum Content {
    /// An object as it lies in the store now.
    Stored(Bytes),
    /// An object in the version that was asked for.
    Served(Value),
    /// A document that is sent as it is (Status, Scale, review, Table), only in the right language.
    Document(Value),
    /// A document that is already JSON.
    Encoded(Vec<u8>),
    /// A body that is made while it is read, in JSON.
    Stream(Body, /* gzipped */ bool),
}

impl Answer {
    /// An object as it lies in the store.
    pub fn stored(status: StatusCode, bytes: Bytes) -> Self {
        Self { status, content: Content::Stored(bytes), warnings: Vec::new() }
    }

    /// An object in the version that was asked for.
    pub fn served(object: Value) -> Self {
        Self { status: StatusCode::OK, content: Content::Served(object), warnings: Vec::new() }
    }

    /// A document.
    pub fn document(status: StatusCode, document: Value) -> Self {
        Self { status, content: Content::Document(document), warnings: Vec::new() }
    }

    /// A document that is already JSON.
    pub fn encoded(json: Vec<u8>) -> Self {
        Self { status: StatusCode::OK, content: Content::Encoded(json), warnings: Vec::new() }
    }

    /// A body that is made while it is read.
    pub fn stream(body: Body, gzipped: bool) -> Self {
        Self { status: StatusCode::OK, content: Content::Stream(body, gzipped), warnings: Vec::new() }
    }

    /// The answer with another document in place of the object, which is in the version that was asked for.
    pub fn try_map_object(
        self,
        map: impl FnOnce(Value) -> Result<Value, ApiError>,
    ) -> Result<Self, ApiError> {
        let object = match self.content {
            Content::Stored(bytes) => stored::parse(&bytes),
            Content::Served(object) => object,
            _ => return Ok(self),
        };
        Ok(Self { content: Content::Document(map(object)?), ..self })
    }

    /// The same answer with warnings.
    pub fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings.extend(warnings);
        self
    }
}

impl Engine {
    /// The answer with its object in the version that was asked for.
    pub async fn in_served_version(&self, call: &Call, answer: Answer) -> Result<Answer, ApiError> {
        match answer.content {
            Content::Stored(bytes) if !call.resource.serves_stored_bytes() => {
                let object = self.conversion.served(&call.resource, stored::parse(&bytes)).await?;
                Ok(Answer { content: Content::Served(object), ..answer })
            }
            content => Ok(Answer { content, ..answer }),
        }
    }

    /// The HTTP response to a call, whose object is in the version that was asked for.
    pub fn respond(&self, call: &Call, answer: Answer) -> Response<Body> {
        let Answer { status, content, warnings } = answer;
        let pretty = call.query.flag("pretty");
        let language = match (call.accepted.language, pretty) {
            (Language::Json, true) => Language::PrettyJson,
            (language, _) => language,
        };
        let mut response = match content {
            Content::Stored(bytes) => self.respond_stored(call, bytes, language),
            Content::Served(object) => self.respond_served(call, &object, language),
            Content::Document(document) => document_response(&document, language),
            Content::Encoded(json) => encoded_response(json, language),
            Content::Stream(body, gzipped) => {
                let mut response = typed(body, "application/json");
                if gzipped {
                    let encoding = HeaderValue::from_static("gzip");
                    response.headers_mut().insert(http::header::CONTENT_ENCODING, encoding);
                }
                response
            }
        };
        *response.status_mut() = status;
        add_warnings(&mut response, &warnings);
        response
    }

    fn respond_stored(&self, call: &Call, bytes: Bytes, language: Language) -> Response<Body> {
        match call.accepted.shape == Shape::Object && language == Language::Json {
            true => typed(Body::full(bytes), "application/json"),
            false => self.respond_served(call, &stored::parse(&bytes), language),
        }
    }

    fn respond_served(&self, call: &Call, object: &Value, language: Language) -> Response<Body> {
        match self.shaped_object(call, object, true) {
            Ok(json) => encoded_response(json, language),
            Err(error) => error_response(&error),
        }
    }
}

/// A response with a document that is already JSON.
fn encoded_response(json: Vec<u8>, language: Language) -> Response<Body> {
    match language {
        Language::Json => typed(Body::full(json), "application/json"),
        Language::PrettyJson | Language::Yaml => document_response(&stored::parse(&json), language),
    }
}

fn add_warnings(response: &mut Response<Body>, warnings: &[String]) {
    for warning in warnings {
        let escaped = warning.replace('\\', "\\\\").replace('"', "\\\"");
        // A warning that no header can carry (control characters) is not worth failing the request for.
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
}
