//! Validates names, label keys, label values and ports, with Kubernetes' error messages. Must not know in which field
//! the string stands.

mod rule;

pub use rule::NameRule;

/// Longest DNS label, label key name and label value.
const LABEL_BYTES_MAX: usize = 63;
/// Longest DNS subdomain, ConfigMap key and environment variable prefix.
const SUBDOMAIN_BYTES_MAX: usize = 253;

const LABEL_KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and \
     end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
     validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, \
     '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  \
     or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const DNS_LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
     or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex \
     used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
     characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
     regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const WILDCARD_RULE: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
     subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an \
     alphanumeric character (e.g. '*.example.com', regex used for validation is \
     '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS_1035_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
     start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
     'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const CONFIG_KEY_RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
     (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const ENV_NAME_RULE: &str = "a valid environment variable name must consist only of printable ASCII \
     characters other than '='";

/// What is wrong with a label key (`example.com/name`); nothing for a good one.
pub fn label_key(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        ["", name] => {
            wrong.push(String::from("prefix part must be non-empty"));
            name
        }
        [prefix, name] => {
            wrong.extend(subdomain(prefix, "bytes").into_iter().map(|rule| format!("prefix part {rule}")));
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {LABEL_KEY_RULE} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        wrong.push(String::from("name part must be non-empty"));
    }
    wrong.extend(over(name, LABEL_BYTES_MAX, "bytes").map(|rule| format!("name part {rule}")));
    if !is_label_word(name) {
        wrong.push(format!("name part {LABEL_KEY_RULE}"));
    }
    wrong
}

/// What is wrong with a label value; nothing for a good one.
pub fn label_value(text: &str) -> Vec<String> {
    let mut wrong: Vec<String> = over(text, LABEL_BYTES_MAX, "bytes").into_iter().collect();
    if !text.is_empty() && !is_label_word(text) {
        wrong.push(LABEL_VALUE_RULE.to_owned());
    }
    wrong
}

/// What is wrong with a lowercase RFC 1123 label such as a container name; nothing for a good one.
pub fn dns_label(text: &str) -> Vec<String> {
    let mut wrong = longer(text, LABEL_BYTES_MAX);
    if !is_dns_label(text) {
        wrong.push(match is_dns_subdomain(text) {
            true => String::from("must not contain dots"),
            false => DNS_LABEL_RULE.to_owned(),
        });
    }
    wrong
}

/// What is wrong with a lowercase RFC 1123 subdomain such as most object names; nothing for a good one.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    subdomain(text, "characters")
}

fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut wrong: Vec<String> = over(text, SUBDOMAIN_BYTES_MAX, unit).into_iter().collect();
    if !is_dns_subdomain(text) {
        wrong.push(DNS_SUBDOMAIN_RULE.to_owned());
    }
    wrong
}

/// What is wrong with a host such as `*.example.com`; nothing for a good one.
pub fn wildcard_subdomain(text: &str) -> Vec<String> {
    let mut wrong = longer(text, SUBDOMAIN_BYTES_MAX);
    if !text.strip_prefix("*.").is_some_and(is_dns_subdomain) {
        wrong.push(WILDCARD_RULE.to_owned());
    }
    wrong
}

/// What is wrong with a DNS-1035 label such as a Service name; nothing for a good one.
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut wrong = longer(text, LABEL_BYTES_MAX);
    if !(is_dns_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())) {
        wrong.push(DNS_1035_RULE.to_owned());
    }
    wrong
}

/// What is wrong with a key of a ConfigMap or Secret; nothing for a good one.
pub fn config_key(text: &str) -> Vec<String> {
    let mut wrong = longer(text, SUBDOMAIN_BYTES_MAX);
    if text.is_empty() || !text.bytes().all(is_label_byte) {
        wrong.push(CONFIG_KEY_RULE.to_owned());
    }
    wrong.extend(dotted(text));
    wrong
}

/// What is wrong with the name of an environment variable; nothing for a good one.
pub fn environment_name(text: &str) -> Vec<String> {
    let printable =
        !text.is_empty() && text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=');
    match printable {
        true => Vec::new(),
        false => vec![ENV_NAME_RULE.to_owned()],
    }
}

/// What is wrong with the name of a port (RFC 6335); nothing for a good one.
pub fn port_name(text: &str) -> Vec<String> {
    let mut wrong = longer(text, 15);
    if text.is_empty() || !text.bytes().all(|byte| is_lower(byte) || byte == b'-') {
        wrong.push(String::from("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"));
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        wrong.push(String::from("must contain at least one letter (a-z)"));
    }
    if text.contains("--") {
        wrong.push(String::from("must not contain consecutive hyphens"));
    }
    if text.starts_with('-') || text.ends_with('-') {
        wrong.push(String::from("must not begin or end with a hyphen"));
    }
    wrong
}

/// What is wrong with a name that stands alone in a path, such as that of a Role; nothing for a good one.
pub fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        _ => path_segment_parts(text),
    }
}

fn path_segment_parts(text: &str) -> Vec<String> {
    let held = ['/', '%'].into_iter().filter(|part| text.contains(*part));
    held.map(|part| format!("may not contain '{part}'")).collect()
}

/// What is wrong with a port number; nothing for a good one.
pub fn port_number(port: i64) -> Option<&'static str> {
    (!(1..=65535).contains(&port)).then_some("must be between 1 and 65535, inclusive")
}

/// Kubernetes counts bytes; it calls them so in labels, and characters elsewhere.
fn over(text: &str, limit_bytes: usize, unit: &str) -> Option<String> {
    (text.len() > limit_bytes).then(|| format!("must be no more than {limit_bytes} {unit}"))
}

fn longer(text: &str, limit_bytes: usize) -> Vec<String> {
    over(text, limit_bytes, "characters").into_iter().collect()
}

/// A key becomes a file name in a volume: these would climb out of it.
fn dotted(text: &str) -> Option<String> {
    match text {
        "." => Some(String::from("must not be '.'")),
        ".." => Some(String::from("must not be '..'")),
        _ if text.starts_with("..") => Some(String::from("must not start with '..'")),
        _ => None,
    }
}

fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

fn is_label_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().copied().all(is_label_byte)
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Only the characters of a DNS-1123 label, of any length.
pub fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| is_lower(*byte) || *byte == b'-')
        && bytes.first().is_some_and(|byte| is_lower(*byte))
        && bytes.last().is_some_and(|byte| is_lower(*byte))
}

/// Only the characters of a DNS-1123 subdomain, of any length.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: fn(&str) -> Vec<String>, text: &str, starts: &[&str]) {
        let wrong = rule(text);
        assert_eq!(wrong.len(), starts.len(), "{text:?}: {wrong:?}");
        for (message, start) in wrong.iter().zip(starts) {
            assert!(message.starts_with(start), "{text:?}: {message:?} does not start with {start:?}");
        }
    }

    #[test]
    fn names_are_refused_in_kubernetes_words() {
        let long = "x".repeat(254);
        check(label_key, "app.kubernetes.io/name", &[]);
        check(label_key, "a/b/c", &["a valid label key must consist"]);
        check(label_key, "/a", &["prefix part must be non-empty"]);
        check(label_key, "A/a", &["prefix part a lowercase RFC 1123 subdomain"]);
        check(label_key, "", &["name part must be non-empty", "name part must consist"]);
        check(label_key, &long, &["name part must be no more than 63 bytes"]);
        check(label_key, &format!("{long}/a"), &["prefix part must be no more than 253 bytes"]);
        check(label_value, "", &[]);
        check(label_value, &long, &["must be no more than 63 bytes"]);
        check(label_value, "-a", &["a valid label must be an empty string"]);
        check(dns_label, "a.b", &["must not contain dots"]);
        check(dns_label, "A", &["a lowercase RFC 1123 label"]);
        check(dns_subdomain, "a.b-c.d", &[]);
        check(dns_subdomain, "a..b", &["a lowercase RFC 1123 subdomain"]);
        check(dns_subdomain, &long, &["must be no more than 253 characters"]);
        check(dns_label, &long, &["must be no more than 63 characters"]);
        check(dns_1035_label, &long, &["must be no more than 63 characters"]);
        check(config_key, &long, &["must be no more than 253 characters"]);
        check(wildcard_subdomain, &format!("*.{long}"), &["must be no more than 253 characters"]);
        check(wildcard_subdomain, "*.a.b", &[]);
        check(wildcard_subdomain, "*a.b", &["a wildcard DNS-1123 subdomain"]);
        check(dns_1035_label, "1a", &["a DNS-1035 label"]);
        check(config_key, "..a", &["must not start with '..'"]);
        check(config_key, "a/b", &["a valid config key"]);
        check(environment_name, "a b", &[]);
        check(environment_name, "a=b", &["a valid environment variable name"]);
        check(port_name, "8-", &["must contain at least one letter", "must not begin or end"]);
        check(path_segment, "a:b", &[]);
        check(path_segment, "..", &["may not be '..'"]);
        check(path_segment, "a/b%", &["may not contain '/'", "may not contain '%'"]);
        check(port_name, "much-too-long-name", &["must be no more than 15 characters"]);
    }
}
