//! Skipped namespaces and kinds: the operator excludes them from all policies. The syntax is that of Karmada's flags,
//! so that a command line can be taken over.

use std::fmt;
use std::sync::Arc;

use regex::Regex;

use crate::template::TemplateKey;

/// The skipped namespaces and kinds. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SkippedResources {
    lists: Arc<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    /// What they were read from.
    namespaces_text: String,
    kinds_text: String,
    namespaces: Vec<Regex>,
    kinds: Vec<Kinds>,
}

/// Which kinds.
#[derive(Debug)]
enum Kinds {
    Group(String),
    ApiVersion(String),
    Kind { api_version: String, kind: String },
}

/// Why a list of skipped namespaces or kinds cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// A namespace is no regular expression.
    Pattern {
        /// The item.
        item: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Kinds are in none of the three forms.
    Kinds {
        /// The item.
        item: String,
    },
}

impl SkippedResources {
    /// Reads both lists: regular expressions with commas between them, each put between `^` and `$` as Karmada does,
    /// and groups (`example.io`), versions of groups (`example.io/v1`) or kinds (`example.io/v1/Chart,Release`,
    /// `v1/Secret`) with semicolons between them.
    pub fn read(namespaces: &str, kinds: &str) -> Result<Self, Unreadable> {
        let patterns = items(namespaces, ',').map(pattern).collect::<Result<_, _>>()?;
        let mut found = Vec::new();
        for item in items(kinds, ';') {
            found.extend(kinds_of(item).ok_or_else(|| Unreadable::Kinds { item: item.to_owned() })?);
        }
        let lists = Lists {
            namespaces_text: namespaces.trim().to_owned(),
            kinds_text: kinds.trim().to_owned(),
            namespaces: patterns,
            kinds: found,
        };
        Ok(Self { lists: Arc::new(lists) })
    }

    /// The two lists as they were read.
    pub fn texts(&self) -> (&str, &str) {
        (&self.lists.namespaces_text, &self.lists.kinds_text)
    }

    /// Whether no policy takes what is in this namespace, and the namespace does not go to members by itself. What is
    /// in none has an empty name, which a pattern may mean as well.
    pub fn has_namespace(&self, name: &str) -> bool {
        self.lists.namespaces.iter().any(|pattern| pattern.is_match(name))
    }

    /// Whether no policy takes this template.
    pub fn has(&self, key: &TemplateKey) -> bool {
        self.has_namespace(&key.namespace) || self.lists.kinds.iter().any(|kinds| kinds.have(key))
    }
}

impl Kinds {
    fn have(&self, key: &TemplateKey) -> bool {
        match self {
            Self::Group(name) => name == key.group(),
            Self::ApiVersion(wanted) => *wanted == key.api_version,
            Self::Kind { api_version, kind } => {
                *api_version == key.api_version && kind.eq_ignore_ascii_case(&key.kind)
            }
        }
    }
}

impl PartialEq for SkippedResources {
    fn eq(&self, other: &Self) -> bool {
        self.texts() == other.texts()
    }
}

impl Eq for SkippedResources {}

fn items(text: &str, separator: char) -> impl Iterator<Item = &str> {
    text.split(separator).map(str::trim).filter(|item| !item.is_empty())
}

fn pattern(item: &str) -> Result<Regex, Unreadable> {
    // Of several lines, of which some only point at the others, the last one says what is wrong.
    let unreadable = |error: regex::Error| {
        let problem = error.to_string();
        let problem = problem.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Unreadable::Pattern { item: item.to_owned(), problem }
    };
    Regex::new(&format!("^{item}$")).map_err(unreadable)
}

/// None if it has none of the three forms. The group of Kubernetes' own first kinds has no name, so it cannot be left
/// out as a whole.
fn kinds_of(item: &str) -> Option<Vec<Kinds>> {
    let parts: Vec<&str> = item.split('/').map(str::trim).collect();
    let (api_version, names) = match *parts {
        [group] if !group.is_empty() && !is_version(group) => {
            return Some(vec![Kinds::Group(group.to_owned())]);
        }
        [version, names] if is_version(version) => (version.to_owned(), names),
        [group, version] if !group.is_empty() && is_version(version) => {
            return Some(vec![Kinds::ApiVersion(format!("{group}/{version}"))]);
        }
        [group, version, names] if !group.is_empty() && is_version(version) => {
            (format!("{group}/{version}"), names)
        }
        _ => return None,
    };
    let kinds: Vec<Kinds> = items(names, ',')
        .map(|kind| Kinds::Kind { api_version: api_version.clone(), kind: kind.to_owned() })
        .collect();
    (!kinds.is_empty()).then_some(kinds)
}

/// `v1`, `v1beta1`: groups may begin alike.
fn is_version(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else { return false };
    let (major, minor) = match rest.split_once("alpha").or_else(|| rest.split_once("beta")) {
        Some((major, minor)) => (major, Some(minor)),
        None => (rest, None),
    };
    is_number(major) && minor.is_none_or(is_number)
}

impl fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern { item, problem } => {
                write!(formatter, "{item:?} is not a regular expression: {problem}")
            }
            Self::Kinds { item } => write!(
                formatter,
                "{item:?} is not of the form group, group/version, group/version/Kind,Kind or v1/Kind,Kind"
            ),
        }
    }
}

impl std::error::Error for Unreadable {}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(api_version: &str, kind: &str, namespace: &str) -> TemplateKey {
        TemplateKey {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: "web".to_owned(),
        }
    }

    #[test]
    fn namespaces_are_meant_by_their_whole_name() {
        let skipped = SkippedResources::read("velero, team-.*,(lab|den),", "").expect("readable");
        for (namespace, expected) in [
            ("velero", true),
            ("velero-2", false),
            ("team-a", true),
            ("my-team-a", false),
            ("lab", true),
            ("den", true),
            ("label", false),
            ("", false),
        ] {
            assert_eq!(skipped.has(&key("v1", "Secret", namespace)), expected, "{namespace}");
        }
        assert!(
            SkippedResources::read(".*", "").expect("readable").has(&key("v1", "Node", "")),
            "as in Karmada"
        );
        assert!(!SkippedResources::default().has(&key("v1", "Secret", "default")));
    }

    #[test]
    fn kinds_are_meant_by_group_version_or_name() {
        let text =
            "example.io; v2.example.io; apps / v1beta1; apps/v1/DaemonSet,statefulset; v1/Secret,Endpoints";
        let skipped = SkippedResources::read("", text).expect("readable");
        for (api_version, kind, expected) in [
            ("example.io/v3", "Anything", true),
            ("sub.example.io/v3", "Anything", false),
            ("v2.example.io/v1", "Anything", true),
            ("apps/v1beta1", "Deployment", true),
            ("apps/v1", "Deployment", false),
            ("apps/v1", "DaemonSet", true),
            ("apps/v1", "StatefulSet", true),
            ("v1", "Secret", true),
            ("v1", "Endpoints", true),
            ("v1", "Service", false),
        ] {
            assert_eq!(skipped.has(&key(api_version, kind, "default")), expected, "{api_version} {kind}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for item in ["v1", "/v1", "apps/v1/", "apps/Deployment", "apps/v1/Deployment/web", "apps//Deployment"]
        {
            let found = SkippedResources::read("", item).expect_err("unreadable");
            assert_eq!(found, Unreadable::Kinds { item: item.to_owned() });
        }
        let found = SkippedResources::read("fine,(", "").expect_err("unreadable").to_string();
        assert_eq!(found, "\"(\" is not a regular expression: unclosed group");
    }
}
