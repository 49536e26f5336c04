//! A small DSL for structural schemas: as short as the fact it states. A field without a description does not compile.
//! Knows no kind.

use serde_json::{Map, Value, json};

/// One node of a schema, and whether the object around it needs it.
#[derive(Clone)]
pub(super) struct Schema {
    keywords: Map<String, Value>,
    required: bool,
}

/// A schema that says what it is for. Only [`Schema::about`] makes one, and fields are made of nothing else.
#[derive(Clone)]
pub(super) struct Described(Schema);

/// A field of an object.
pub(super) type Field = (&'static str, Described);

pub(super) fn string() -> Schema {
    typed("string")
}

pub(super) fn boolean() -> Schema {
    typed("boolean")
}

/// An integer without a stated size, Go's `int`.
pub(super) fn integer() -> Schema {
    typed("integer")
}

pub(super) fn int32() -> Schema {
    integer().with("format", "int32")
}

pub(super) fn int64() -> Schema {
    integer().with("format", "int64")
}

pub(super) fn date_time() -> Schema {
    string().with("format", "date-time")
}

/// One of these words.
pub(super) fn one_of(words: &[&str]) -> Schema {
    string().with("enum", json!(words))
}

/// An object with exactly these fields.
pub(super) fn object(fields: impl IntoIterator<Item = Field>) -> Schema {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, Described(field)) in fields {
        if field.required {
            required.push(name);
        }
        properties.insert(name.to_owned(), field.into_value());
    }
    required.sort_unstable();
    let mut schema = typed("object");
    if !properties.is_empty() {
        schema = schema.with("properties", properties);
    }
    if !required.is_empty() {
        schema = schema.with("required", json!(required));
    }
    schema
}

/// A whole object of a kind. Its metadata has no description: API servers refuse a definition that says more of metadata
/// than its type, and describe it themselves.
pub(super) fn whole_object(fields: impl IntoIterator<Item = Field>) -> Schema {
    object(fields.into_iter().chain([("metadata", Described(typed("object")))]))
}

/// A map from any name to such values.
pub(super) fn map_of(values: Schema) -> Schema {
    typed("object").with("additionalProperties", values.into_value())
}

pub(super) fn list_of(items: Schema) -> Schema {
    typed("array").with("items", items.into_value())
}

pub(super) fn strings() -> Schema {
    list_of(string())
}

/// An object that is kept as it is.
pub(super) fn raw_object() -> Schema {
    typed("object").with("x-kubernetes-preserve-unknown-fields", true)
}

/// Anything, kept as it is.
pub(super) fn anything() -> Schema {
    Schema { keywords: Map::new(), required: false }.with("x-kubernetes-preserve-unknown-fields", true)
}

/// A number or a text.
pub(super) fn int_or_string() -> Schema {
    Schema { keywords: Map::new(), required: false }
        .with("anyOf", json!([{ "type": "integer" }, { "type": "string" }]))
        .with("x-kubernetes-int-or-string", true)
}

/// An amount in Kubernetes' notation.
pub(super) fn quantity() -> Schema {
    const NUMBER: &str = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))";
    let pattern = format!(r"^(\+|-)?{NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{NUMBER}))?$");
    int_or_string().with("pattern", pattern)
}

fn typed(name: &str) -> Schema {
    Schema { keywords: Map::new(), required: false }.with("type", name)
}

impl Schema {
    /// Adds one keyword.
    pub(super) fn with(mut self, keyword: &str, value: impl Into<Value>) -> Schema {
        self.keywords.insert(keyword.to_owned(), value.into());
        self
    }

    /// The object around it needs it.
    pub(super) fn required(mut self) -> Schema {
        self.required = true;
        self
    }

    /// What it is when it was not said.
    pub(super) fn default(self, value: impl Into<Value>) -> Schema {
        self.with("default", value)
    }

    /// What `kubectl explain` says: what it does, its values and its default, and what surprises.
    pub(super) fn about(self, sentences: &str) -> Described {
        Described(self.with("description", sentences))
    }

    /// Length of a text.
    pub(super) fn length(self, least: u32, most: u32) -> Schema {
        let schema = self.with("maxLength", most);
        if least > 0 { schema.with("minLength", least) } else { schema }
    }

    pub(super) fn at_least(self, value: i64) -> Schema {
        self.with("minimum", value)
    }

    pub(super) fn pattern(self, regex: &str) -> Schema {
        self.with("pattern", regex)
    }

    pub(super) fn not_empty(self) -> Schema {
        self.with("minItems", 1)
    }

    /// A list of at most so many items.
    pub(super) fn at_most(self, items: usize) -> Schema {
        self.with("maxItems", items)
    }

    /// A list that server-side apply replaces as a whole.
    pub(super) fn atomic_list(self) -> Schema {
        self.with("x-kubernetes-list-type", "atomic")
    }

    /// A list of type `map`, whose items server-side apply merges by this field.
    pub(super) fn keyed_by(self, field: &str) -> Schema {
        self.with("x-kubernetes-list-type", "map").with("x-kubernetes-list-map-keys", json!([field]))
    }

    /// An object that server-side apply replaces as a whole.
    pub(super) fn atomic_map(self) -> Schema {
        self.with("x-kubernetes-map-type", "atomic")
    }

    fn into_value(self) -> Value {
        Value::Object(self.keywords)
    }
}

impl Described {
    pub(super) fn into_value(self) -> Value {
        self.0.into_value()
    }
}
