//! Field selectors (`?fieldSelector=`): which fields each kind supports, and their values in an object. Must not know
//! about labels.

use std::borrow::Cow;

use super::scan;
use crate::error::ApiError;

/// A question about fields: every requirement must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    field: Field,
    equal: bool,
    value: String,
}

/// Where a selectable field stands in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    label: Cow<'static, str>,
    /// Dotted paths: the first that is there and not empty counts.
    paths: Vec<Cow<'static, str>>,
    /// What an absent field is taken for.
    absent: &'static str,
}

/// The fields that one kind offers to field selectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectableFields {
    fields: Vec<Field>,
    refusal: Refusal,
}

/// Which sentence refuses an unknown field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Usual,
    OfJob,
    MetadataOnly,
}

impl SelectableFields {
    /// The fields of a built-in kind.
    pub fn builtin(group: &str, kind: &str) -> Self {
        let fields = match (group, kind) {
            ("", "Pod") => POD,
            ("", "Node") => &[("metadata.name", "", ""), ("spec.unschedulable", "", "false")],
            ("", "Namespace") => &[("metadata.name", "", ""), ("status.phase", "", "")],
            ("", "ReplicationController") => &[NAME, NAMESPACE, ("status.replicas", "", "0")],
            ("", "Secret") => &[NAME, NAMESPACE, ("type", "", "")],
            ("", "Service") => &[NAME, NAMESPACE, ("spec.clusterIP", "", ""), ("spec.type", "", "")],
            ("", "Event") => EVENT,
            ("events.k8s.io", "Event") => EVENTS_EVENT,
            ("batch", "Job") => &[NAME, NAMESPACE, ("status.successful", "status.succeeded", "0")],
            ("certificates.k8s.io", "CertificateSigningRequest") => &[NAME, ("spec.signerName", "", "")],
            _ => return Self::named(Refusal::MetadataOnly, &[NAME, NAMESPACE]),
        };
        let refusal = match kind {
            "Job" => Refusal::OfJob,
            _ => Refusal::Usual,
        };
        Self::named(refusal, fields)
    }

    /// The fields of a custom kind: `selectable` are the JSON paths of its `selectableFields`, with or
    /// without the leading dot.
    pub fn custom<'a>(namespaced: bool, selectable: impl IntoIterator<Item = &'a str>) -> Self {
        let always: &[Entry] = if namespaced { &[NAME, NAMESPACE] } else { &[NAME] };
        let mut offered = Self::named(Refusal::Usual, always);
        offered.fields.extend(selectable.into_iter().map(|path| {
            let path = path.strip_prefix('.').unwrap_or(path).to_owned();
            Field { label: Cow::Owned(path.clone()), paths: vec![Cow::Owned(path)], absent: "" }
        }));
        offered
    }

    fn named(refusal: Refusal, entries: &[Entry]) -> Self {
        let field = |(label, paths, absent): &Entry| {
            let paths = if paths.is_empty() { label } else { paths };
            let paths = paths.split(' ').map(Cow::Borrowed).collect();
            Field { label: Cow::Borrowed(*label), paths, absent }
        };
        Self { fields: entries.iter().map(field).collect(), refusal }
    }

    fn field(&self, label: &str) -> Result<&Field, String> {
        self.fields.iter().find(|field| field.label == label).ok_or_else(|| match self.refusal {
            Refusal::Usual => format!("field label not supported: {label}"),
            Refusal::OfJob => format!("field label {label:?} not supported for Job"),
            Refusal::MetadataOnly => format!(
                "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            ),
        })
    }
}

/// Label, paths (empty: the label itself; several: separated by blanks), value when absent.
type Entry = (&'static str, &'static str, &'static str);

const NAME: Entry = ("metadata.name", "", "");
const NAMESPACE: Entry = ("metadata.namespace", "", "");
const POD: &[Entry] = &[
    NAME,
    NAMESPACE,
    ("spec.nodeName", "", ""),
    ("spec.host", "spec.nodeName", ""),
    ("spec.restartPolicy", "", ""),
    ("spec.schedulerName", "", ""),
    ("spec.serviceAccountName", "", ""),
    ("spec.hostNetwork", "", "false"),
    ("status.phase", "", ""),
    ("status.podIP", "status.podIPs.0.ip", ""),
    // Accepted and never set: kube-apiserver compares with the empty string.
    ("status.podIPs", "status.podIPs.-", ""),
    ("status.nominatedNodeName", "", ""),
];
/// One Event is read through two groups, so a field may stand under either name.
const EVENT: &[Entry] = &[
    NAME,
    NAMESPACE,
    ("involvedObject.kind", "involvedObject.kind regarding.kind", ""),
    ("involvedObject.namespace", "involvedObject.namespace regarding.namespace", ""),
    ("involvedObject.name", "involvedObject.name regarding.name", ""),
    ("involvedObject.uid", "involvedObject.uid regarding.uid", ""),
    ("involvedObject.apiVersion", "involvedObject.apiVersion regarding.apiVersion", ""),
    ("involvedObject.resourceVersion", "involvedObject.resourceVersion regarding.resourceVersion", ""),
    ("involvedObject.fieldPath", "involvedObject.fieldPath regarding.fieldPath", ""),
    ("reason", "", ""),
    ("reportingComponent", "reportingComponent reportingController", ""),
    ("source", "source.component deprecatedSource.component reportingComponent reportingController", ""),
    ("type", "", ""),
];
const EVENTS_EVENT: &[Entry] = &[
    NAME,
    NAMESPACE,
    ("regarding.kind", "regarding.kind involvedObject.kind", ""),
    ("regarding.namespace", "regarding.namespace involvedObject.namespace", ""),
    ("regarding.name", "regarding.name involvedObject.name", ""),
    ("regarding.uid", "regarding.uid involvedObject.uid", ""),
    ("regarding.apiVersion", "regarding.apiVersion involvedObject.apiVersion", ""),
    ("regarding.resourceVersion", "regarding.resourceVersion involvedObject.resourceVersion", ""),
    ("regarding.fieldPath", "regarding.fieldPath involvedObject.fieldPath", ""),
    ("reason", "", ""),
    ("reportingController", "reportingController reportingComponent", ""),
    ("type", "", ""),
];

impl FieldSelector {
    /// Reads `?fieldSelector=` for a kind that offers these fields.
    pub fn parse(text: &str, offered: &SelectableFields) -> Result<Self, ApiError> {
        Self::read(text, offered).map_err(ApiError::bad_request)
    }

    fn read(text: &str, offered: &SelectableFields) -> Result<Self, String> {
        let mut requirements = Vec::new();
        for term in terms(text).into_iter().filter(|term| !term.is_empty()) {
            let Some((label, equal, value)) = split(term) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{term}'"));
            };
            let value = unescaped(value)?;
            requirements.push(Requirement { field: offered.field(label)?.clone(), equal, value });
        }
        Ok(Self { requirements })
    }

    /// Whether every object matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The value that a field must equal, so that a read can go straight to one name or namespace.
    pub fn exact(&self, label: &str) -> Option<&str> {
        let exact = self.requirements.iter().find(|one| one.equal && one.field.label == label)?;
        Some(&exact.value)
    }

    /// Whether the fields of a well-formed JSON object match; reads only those fields.
    pub fn matches_raw(&self, object: &[u8]) -> bool {
        self.requirements.iter().all(|requirement| requirement.holds(&requirement.field.read_raw(object)))
    }
}

impl Requirement {
    fn holds(&self, value: &str) -> bool {
        (value == self.value) == self.equal
    }
}

impl Field {
    fn read_raw<'a>(&self, object: &'a [u8]) -> Cow<'a, str> {
        let values = self.paths.iter().filter_map(|path| {
            path.split('.').try_fold(object, |value, key| match value.first() {
                Some(b'[') => (key == "0").then(|| scan::first(value)).flatten(),
                _ => scan::find(value, &[key]),
            })
        });
        let mut texts = values.filter_map(raw_scalar).filter(|text| !text.is_empty());
        texts.next().unwrap_or(Cow::Borrowed(self.absent))
    }
}

fn raw_scalar(value: &[u8]) -> Option<Cow<'_, str>> {
    match value.first()? {
        b'"' => scan::text(value),
        b'{' | b'[' | b'n' => None,
        _ => std::str::from_utf8(value).ok().map(Cow::Borrowed),
    }
}

/// The comma-separated terms, sorted as Kubernetes reads them; an escaped comma is part of a value.
fn terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms.sort_unstable();
    terms
}

fn split(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find("!=").into_iter().chain(term.find('=')).min()?;
    let (label, rest) = term.split_at(at);
    let (equal, value) = match rest.strip_prefix("!=") {
        Some(value) => (false, value),
        None => (true, rest.strip_prefix("==").or(rest.strip_prefix('='))?),
    };
    Some((label, equal, value))
}

fn unescaped(value: &str) -> Result<String, String> {
    let mut text = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => text.push(escaped),
                other => {
                    let sequence: String = Some('\\').into_iter().chain(other).collect();
                    return Err(format!("invalid field selector: invalid escape sequence: {sequence}"));
                }
            },
            ',' | '=' => {
                let code = u32::from(letter);
                return Err(format!("invalid field selector: unescaped character in value: {code}"));
            }
            other => text.push(other),
        }
    }
    Ok(text)
}
