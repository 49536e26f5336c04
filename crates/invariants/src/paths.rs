//! Paths and queries of requests: what a path is read as is written back as a path that is read the same, and options
//! that are taken keep to their limits.

use apiserver::fuzzing::{
    DeleteOptions, Query, ResourcePath, Target, WriteKind, WriteOptions, check_list_options,
    continuation_read_again,
};

use crate::{json, lines};

pub fn invariant(input: &[u8]) {
    let Some([path, query, body]) = lines(input) else { return };
    let found = Target::parse(path);
    let written = match &found {
        Target::Resource(resource) => written(resource),
        Target::Other(segments) => segments.iter().map(|segment| escaped(segment)).collect(),
        Target::Malformed => Vec::new(),
    };
    if found != Target::Malformed {
        assert_eq!(Target::parse(&format!("/{}", written.join("/"))), found, "{path:?}");
    }
    options(&Query::parse(query), body);
}

fn written(path: &ResourcePath) -> Vec<String> {
    let root = match path.group.as_str() {
        "" => vec!["api"],
        group => vec!["apis", group],
    };
    let namespace = path.namespace.iter().flat_map(|namespace| ["namespaces", namespace]);
    let rest = [&path.name, &path.subresource].into_iter().flatten().map(String::as_str);
    let words =
        root.into_iter().chain([path.version.as_str()]).chain(namespace).chain([path.resource.as_str()]);
    words.chain(rest).map(escaped).collect()
}

/// Every byte in the one way that hides nothing.
fn escaped(segment: &str) -> String {
    segment.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn options(query: &Query, body: &str) {
    for kind in [WriteKind::Create, WriteKind::Update, WriteKind::Patch, WriteKind::Apply] {
        let Ok(options) = WriteOptions::parse(query, "", kind) else { continue };
        let manager = options.field_manager;
        assert!(
            !manager.is_empty() && manager.len() <= 128 && !manager.contains(char::is_control),
            "{manager:?}"
        );
    }
    let _ = DeleteOptions::parse(&json(body).unwrap_or_default(), query);
    let _ = (check_list_options(query, false), check_list_options(query, true));
    assert_eq!(query.get("limit"), query.all("limit").next().filter(|value| !value.is_empty()));
    if let Ok(page) = continuation_read_again(query.get("continue").unwrap_or_default()) {
        assert_eq!(continuation_read_again(&page), Ok(page.clone()));
    }
}
