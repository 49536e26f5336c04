//! The committed table of messages: for every field its number, wire type and JSON name, and whether
//! Go writes it when it is empty. The generator in `checks` says what each word of the file means.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::kinds::inflate;

/// All messages, and the kinds that a body may hold.
pub(super) struct Table {
    roots: BTreeMap<&'static str, usize>,
    messages: Vec<Message>,
}

/// One message.
pub(super) struct Message {
    pub(super) form: Form,
    /// Sorted by number.
    pub(super) fields: Vec<Field>,
}

/// What the JSON of a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// An object of its fields.
    Object,
    /// RFC 3339 in seconds, `null` for no time.
    Time,
    /// RFC 3339 in microseconds, `null` for no time.
    MicroTime,
    /// The string inside.
    Quantity,
    /// A number or a string.
    IntOrString,
    /// JSON text inside, as it is.
    Raw,
    /// The list inside.
    List,
    /// The list inside, or the schema inside.
    Either,
    /// The schema inside, or a boolean.
    OrBool,
}

/// One field of a message.
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) json: &'static str,
    pub(super) shape: Shape,
    pub(super) value: ValueType,
    /// A Go pointer: absent and zero differ.
    pub(super) pointer: bool,
    pub(super) omit_empty: bool,
    pub(super) omit_zero: bool,
    /// Its fields belong to the message around it.
    pub(super) inline: bool,
}

/// How often a field may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    Repeated,
    Map,
}

/// The type of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueType {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    Bytes,
    Message(usize),
}

/// The table, read when the first protobuf body arrives.
pub(super) fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| {
        // Leaked once per process, so that names can be borrowed from the text.
        let text: &'static str =
            Box::leak(inflate(include_bytes!("../../data/messages.bin")).into_boxed_str());
        Table::read(text)
    });
    &TABLE
}

impl Table {
    fn read(text: &'static str) -> Self {
        let mut lines = text.lines();
        let roots = lines.next().unwrap_or_default().split(' ').filter_map(|word| {
            let (name, place) = word.split_once('=')?;
            Some((name, place.parse().ok()?))
        });
        let roots = roots.collect();
        let messages = lines.filter_map(|line| line.split_once('\t')).map(|(_, words)| Message::read(words));
        Self { roots, messages: messages.collect() }
    }

    /// The message of a kind. Delete options are the same in every group version.
    pub(super) fn root(&self, api_version: &str, kind: &str) -> Option<usize> {
        let api_version = if kind == "DeleteOptions" { "v1" } else { api_version };
        self.roots.get(format!("{api_version}/{kind}").as_str()).copied()
    }

    pub(super) fn message(&self, index: usize) -> Option<&Message> {
        self.messages.get(index)
    }

    /// The kinds that a body may hold, as `apiVersion/Kind`.
    #[cfg(test)]
    pub(super) fn roots(&self) -> impl Iterator<Item = &'static str> {
        self.roots.keys().copied()
    }
}

impl Message {
    fn read(words: &'static str) -> Self {
        let mut form = Form::Object;
        let mut fields = Vec::new();
        for word in words.split(' ').filter(|word| !word.is_empty()) {
            match word.strip_prefix('=') {
                Some(name) => form = Form::read(name),
                None => fields.extend(Field::read(word)),
            }
        }
        fields.sort_by_key(|field| field.number);
        Self { form, fields }
    }

    pub(super) fn position(&self, number: u32) -> Option<usize> {
        self.fields.binary_search_by_key(&number, |field| field.number).ok()
    }
}

impl Form {
    fn read(name: &str) -> Self {
        match name {
            "time" => Self::Time,
            "microtime" => Self::MicroTime,
            "quantity" => Self::Quantity,
            "intorstring" => Self::IntOrString,
            "raw" => Self::Raw,
            "list" => Self::List,
            "either" => Self::Either,
            "orbool" => Self::OrBool,
            _ => Self::Object,
        }
    }
}

impl Field {
    fn read(word: &'static str) -> Option<Self> {
        let mut parts = word.split(':');
        let number = parts.next()?.parse().ok()?;
        let json = parts.next()?;
        let kind = parts.next()?;
        let flags = parts.next()?;
        let (shape, kind) = match kind.split_at_checked(1)? {
            ("*", kind) => (Shape::Repeated, kind),
            ("%", kind) => (Shape::Map, kind),
            _ => (Shape::One, kind),
        };
        Some(Self {
            number,
            json,
            shape,
            value: ValueType::read(kind)?,
            pointer: flags.contains('p'),
            omit_empty: flags.contains('o'),
            omit_zero: flags.contains('z'),
            inline: flags.contains('n'),
        })
    }
}

impl ValueType {
    fn read(word: &str) -> Option<Self> {
        Some(match word {
            "s" => Self::String,
            "t" => Self::Bool,
            "i" => Self::Int32,
            "l" => Self::Int64,
            "d" => Self::Double,
            "y" => Self::Bytes,
            place => Self::Message(place.parse().ok()?),
        })
    }
}
