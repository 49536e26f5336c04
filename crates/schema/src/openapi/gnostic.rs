//! An OpenAPI v2 document in the protobuf that older clients ask for
//! (`application/com.github.proto-openapi.spec.v2@v1.0+protobuf`). Writes what [`super::swagger`] says.

use serde_json::{Map, Value};

/// The protobuf of an OpenAPI v2 document.
pub fn swagger_protobuf(swagger: &Value) -> Vec<u8> {
    let mut document = Message::default();
    document.text(1, &swagger["swagger"]);
    document.message(2, |info| {
        info.text(1, &swagger["info"]["title"]);
        info.text(2, &swagger["info"]["version"]);
    });
    document.message(8, |paths| {
        paths.named(2, &swagger["paths"], path_item);
    });
    document.message(9, |definitions| {
        definitions.named(1, &swagger["definitions"], schema);
    });
    document.bytes
}

fn path_item(item: &mut Message, source: &Value) {
    for (number, method) in [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (8, "patch")] {
        if source[method].is_object() {
            item.message(number, |message| operation(message, &source[method]));
        }
    }
    parameters(item, 9, &source["parameters"]);
}

fn operation(message: &mut Message, source: &Value) {
    message.text(5, &source["operationId"]);
    message.texts(6, &source["produces"]);
    message.texts(7, &source["consumes"]);
    parameters(message, 8, &source["parameters"]);
    message.message(9, |responses| {
        responses.named(1, &source["responses"], |value, source| {
            value.message(1, |response| {
                response.text(1, &source["description"]);
                if source["schema"].is_object() {
                    response.message(2, |item| item.message(1, |message| schema(message, &source["schema"])));
                }
            });
        });
    });
    message.texts(10, &source["schemes"]);
    extensions(message, 13, source);
}

fn parameters(message: &mut Message, number: u32, source: &Value) {
    for parameter in source.as_array().into_iter().flatten() {
        message.message(number, |item| item.message(1, |message| self::parameter(message, parameter)));
    }
}

fn parameter(message: &mut Message, source: &Value) {
    match source["in"].as_str() {
        Some("body") => message.message(1, |body| {
            body.text(2, &source["name"]);
            body.text(3, &source["in"]);
            body.flag(4, &source["required"]);
            body.message(5, |message| schema(message, &source["schema"]));
        }),
        Some("path") => message.message(2, |other| {
            other.message(4, |path| {
                path.flag(1, &source["required"]);
                path.text(2, &source["in"]);
                path.text(4, &source["name"]);
                path.text(5, &source["type"]);
                path.flag(19, &source["uniqueItems"]);
            });
        }),
        _ => message.message(2, |other| {
            other.message(3, |query| {
                query.text(2, &source["in"]);
                query.text(4, &source["name"]);
                query.text(6, &source["type"]);
                query.flag(20, &source["uniqueItems"]);
            });
        }),
    }
}

/// Schemas are as deep as the JSON parser lets definitions be.
fn schema(message: &mut Message, source: &Value) {
    for (number, key) in [(1, "$ref"), (2, "format"), (3, "title"), (4, "description"), (13, "pattern")] {
        message.text(number, &source[key]);
    }
    for (number, key) in [(6, "multipleOf"), (7, "maximum"), (9, "minimum")] {
        message.double(number, &source[key]);
    }
    for (number, key) in [(8, "exclusiveMaximum"), (10, "exclusiveMinimum"), (16, "uniqueItems")] {
        message.flag(number, &source[key]);
    }
    for (number, key) in [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ] {
        message.count(number, &source[key]);
    }
    if let Some(default) = source.get("default") {
        message.any(5, default);
    }
    message.texts(19, &source["required"]);
    for value in source["enum"].as_array().into_iter().flatten() {
        message.any(20, value);
    }
    children(message, source);
    extensions(message, 31, source);
}

fn children(message: &mut Message, source: &Value) {
    match &source["additionalProperties"] {
        Value::Bool(allowed) => message.message(21, |item| item.flag(2, &Value::Bool(*allowed))),
        values @ Value::Object(_) => {
            message.message(21, |item| item.message(1, |message| schema(message, values)))
        }
        _ => {}
    }
    if source["type"].is_string() {
        message.message(22, |item| item.text(1, &source["type"]));
    }
    if source["items"].is_object() {
        message.message(23, |item| item.message(1, |message| schema(message, &source["items"])));
    }
    if source["properties"].is_object() {
        message.message(25, |properties| properties.named(1, &source["properties"], schema));
    }
}

fn extensions(message: &mut Message, number: u32, source: &Value) {
    let fields = source.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| name.starts_with("x-")) {
        message.message(number, |named| {
            named.string(1, name);
            named.any(2, value);
        });
    }
}

/// A protobuf message under construction.
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn delimited(&mut self, number: u32, bytes: &[u8]) {
        self.varint(u64::from(number << 3 | 2));
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn message(&mut self, number: u32, write: impl FnOnce(&mut Message)) {
        let mut message = Message::default();
        write(&mut message);
        self.delimited(number, &message.bytes);
    }

    /// A repeated pair of name and message, one for each field of an object.
    fn named(&mut self, number: u32, source: &Value, write: impl Fn(&mut Message, &Value)) {
        let empty = Map::new();
        for (name, value) in source.as_object().unwrap_or(&empty) {
            self.message(number, |named| {
                named.string(1, name);
                named.message(2, |message| write(message, value));
            });
        }
    }

    fn string(&mut self, number: u32, text: &str) {
        self.delimited(number, text.as_bytes());
    }

    fn text(&mut self, number: u32, source: &Value) {
        source.as_str().into_iter().for_each(|text| self.string(number, text));
    }

    fn texts(&mut self, number: u32, source: &Value) {
        source.as_array().into_iter().flatten().for_each(|text| self.text(number, text));
    }

    fn flag(&mut self, number: u32, source: &Value) {
        if source == &Value::Bool(true) {
            self.count(number, &Value::from(1));
        }
    }

    fn count(&mut self, number: u32, source: &Value) {
        if let Some(count) = source.as_u64() {
            self.varint(u64::from(number << 3));
            self.varint(count);
        }
    }

    fn double(&mut self, number: u32, source: &Value) {
        if let Some(value) = source.as_f64() {
            self.varint(u64::from(number << 3 | 1));
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// A free value, as YAML; JSON is YAML.
    fn any(&mut self, number: u32, value: &Value) {
        self.message(number, |any| any.string(2, &value.to_string()));
    }
}
