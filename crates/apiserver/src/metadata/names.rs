//! Which texts are names: DNS labels and subdomains, label keys and values, path segments. Answers with
//! the sentences Kubernetes gives. Must not know which field a text came from.

/// How the objects of a kind may be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// Dot-separated DNS-1123 labels; what most kinds ask for.
    Subdomain,
    /// One DNS-1123 label.
    Label,
    /// One DNS-1035 label: as `Label`, but a letter comes first.
    Dns1035Label,
    /// Whatever can stand in a URL path.
    PathSegment,
    /// A subdomain that leaves room for the eleven characters its Jobs append.
    CronJob,
}

impl NameRule {
    /// The rule of a kind, built-in or custom.
    pub fn of_kind(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("", "Namespace") => Self::Label,
            ("apps", "StatefulSet") => Self::Label,
            ("batch", "CronJob") => Self::CronJob,
            ("", "Service") => Self::Dns1035Label,
            ("rbac.authorization.k8s.io", _) => Self::PathSegment,
            ("certificates.k8s.io", "CertificateSigningRequest") => Self::PathSegment,
            ("policy", "PodDisruptionBudget") => Self::PathSegment,
            _ => Self::Subdomain,
        }
    }

    /// What is wrong with a name; nothing if it is fine.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            Self::Subdomain => dns1123_subdomain(name),
            Self::Label => dns1123_label(name),
            Self::Dns1035Label => dns1035_label(name),
            Self::PathSegment => path_segment(name),
            Self::CronJob => [dns1123_subdomain(name), too_long(name, 52, "characters")].concat(),
        }
    }

    /// What is wrong with a `generateName`, to which random characters will be appended.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        match self {
            Self::PathSegment => path_segment_parts(prefix),
            Self::CronJob => dns1123_subdomain(&masked(prefix)),
            _ => self.check(&masked(prefix)),
        }
    }
}

/// Random characters follow the prefix, so that a dash at its end is no dash at the end of the name.
fn masked(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut text = rest.to_owned();
            text.pop();
            text + "a"
        }
        _ => prefix.to_owned(),
    }
}

const LABEL_FORMAT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1035_FORMAT: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY_FORMAT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                        with an alphanumeric character";

/// What keeps a text from being a DNS-1123 label.
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 63, "characters");
    if !is_dns1123_label(text) {
        faults.push(match is_dns1123_subdomain(text) {
            true => String::from("must not contain dots"),
            false => format!(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
                 must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex \
                 used for validation is '{LABEL_FORMAT}')"
            ),
        });
    }
    faults
}

/// What keeps a text from being a DNS-1123 subdomain.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    subdomain(text, "characters")
}

fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut faults = too_long(text, 253, unit);
    if !is_dns1123_subdomain(text) {
        faults.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
             validation is '{LABEL_FORMAT}(\\.{LABEL_FORMAT})*')"
        ));
    }
    faults
}

/// What keeps a text from being a DNS-1035 label.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 63, "characters");
    if !(is_dns1123_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())) {
        faults.push(format!(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
             alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
             regex used for validation is '{DNS1035_FORMAT}')"
        ));
    }
    faults
}

/// What keeps a text from being a label key, an annotation key or a finalizer.
pub fn qualified_name(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('/').collect();
    let mut faults = Vec::new();
    let name = match parts.as_slice() {
        [name] => name,
        ["", name] => {
            faults.push(String::from("prefix part must be non-empty"));
            name
        }
        [prefix, name] => {
            faults.extend(subdomain(prefix, "bytes").iter().map(|fault| format!("prefix part {fault}")));
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')",
                key_fault()
            )];
        }
    };
    match name.len() {
        0 => faults.push(String::from("name part must be non-empty")),
        1..=63 => {}
        _ => faults.push(String::from("name part must be no more than 63 bytes")),
    }
    if !is_key(name) {
        faults.push(format!("name part {}", key_fault()));
    }
    faults
}

/// What keeps a text from being a label value.
pub fn label_value(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 63, "bytes");
    if !(text.is_empty() || is_key(text)) {
        faults.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
             '12345', regex used for validation is '({KEY_FORMAT})?')"
        ));
    }
    faults
}

fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        _ => path_segment_parts(text),
    }
}

fn path_segment_parts(text: &str) -> Vec<String> {
    let found = ['/', '%'].into_iter().filter(|part| text.contains(*part));
    found.map(|part| format!("may not contain '{part}'")).collect()
}

fn too_long(text: &str, limit: usize, unit: &str) -> Vec<String> {
    match text.len() > limit {
        true => vec![format!("must be no more than {limit} {unit}")],
        false => Vec::new(),
    }
}

fn key_fault() -> String {
    format!(
        "{KEY_TEXT} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{KEY_FORMAT}')"
    )
}

/// Only the characters of a DNS-1123 label, of any length.
pub(crate) fn is_dns1123_label(text: &str) -> bool {
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    between(text, edge, |byte| edge(byte) || *byte == b'-')
}

/// Only the characters of a DNS-1123 subdomain, of any length.
pub(crate) fn is_dns1123_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns1123_label)
}

fn is_key(text: &str) -> bool {
    between(text, u8::is_ascii_alphanumeric, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
    })
}

fn between(text: &str, edge: impl Fn(&u8) -> bool, middle: impl Fn(&u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&edge) && bytes.last().is_some_and(&edge) && bytes.iter().all(middle)
}
