//! Request bodies in Kubernetes' protobuf (`application/vnd.kubernetes.protobuf`) as the JSON that the
//! same Go object would have been. Decodes built-in kinds only; must not know what a request is for.

use serde_json::Value;
use thiserror::Error;

mod empties;
mod messages;
mod object;
mod wire;

pub use empties::{drop_empty, drop_empty_metadata};
use messages::table;
use object::Decoder;
use wire::{Reader, Wire};

/// The first bytes of every body, before the envelope.
const MAGIC: &[u8] = b"k8s\0";

/// Why a body could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The body does not start as Kubernetes' protobuf does.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NotProtobuf,
    /// The envelope names no kind.
    #[error("Object 'Kind' is missing in the protobuf envelope")]
    NoKind,
    /// The envelope names a kind that is not in the table.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// The `apiVersion` of the envelope.
        api_version: String,
        /// The `kind` of the envelope.
        kind: String,
    },
    /// The bytes are not what the kind's messages look like.
    #[error("proto: {0}")]
    Malformed(&'static str),
    /// Messages lie deeper in one another than any object does.
    #[error("proto: exceeded max nesting depth")]
    TooDeep,
    /// The body unfolds into more values than any object has.
    #[error("proto: exceeded max number of values")]
    TooLarge,
}

/// The JSON object in a body, with the `apiVersion` and `kind` of its envelope.
pub fn decode(body: &[u8]) -> Result<Value, DecodeError> {
    let envelope = Envelope::read(body.strip_prefix(MAGIC).ok_or(DecodeError::NotProtobuf)?)?;
    if envelope.kind.is_empty() {
        return Err(DecodeError::NoKind);
    }
    let index = table().root(&envelope.api_version, &envelope.kind).ok_or_else(|| {
        DecodeError::UnknownKind { api_version: envelope.api_version.clone(), kind: envelope.kind.clone() }
    })?;
    let mut object = Decoder::new(table()).message(index, envelope.raw, 0)?;
    if let Value::Object(fields) = &mut object {
        fields.insert("apiVersion".into(), Value::String(envelope.api_version));
        fields.insert("kind".into(), Value::String(envelope.kind));
    }
    Ok(object)
}

/// `runtime.Unknown`: what the body is, and its bytes.
#[derive(Default)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut envelope = Self::default();
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.next()? {
            match (number, wire) {
                (1, Wire::Bytes(type_meta)) => envelope.read_type(type_meta)?,
                (2, Wire::Bytes(raw)) => envelope.raw = raw,
                (3, Wire::Bytes(encoding)) if !encoding.is_empty() => {
                    return Err(DecodeError::Malformed("the envelope has a content encoding"));
                }
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.next()? {
            match (number, wire) {
                (1, Wire::Bytes(text)) => self.api_version = String::from_utf8_lossy(text).into_owned(),
                (2, Wire::Bytes(text)) => self.kind = String::from_utf8_lossy(text).into_owned(),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
