//! User impersonation (`Impersonate-*` headers): RBAC authorizes every part of the other identity (user, group,
//! extra) separately.

use std::collections::BTreeMap;

use http::HeaderMap;

use crate::authn::{ANONYMOUS, AUTHENTICATED, Identity, UNAUTHENTICATED, account_groups, account_of};
use crate::authz::{Action, Object, Rbac};
use crate::http::percent_decode;
use apimachinery::error::ApiError;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
/// Upper bound on impersonated groups and extras; far above what real users have.
const PARTS_MAX: usize = 200;

/// The identity that the headers ask to act as, if this one may; itself if they ask for nothing.
pub(super) fn impersonate(
    rbac: &Rbac,
    identity: Identity,
    headers: &HeaderMap,
) -> Result<Identity, ApiError> {
    if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return Ok(identity);
    }
    let wanted = wanted(headers)?;
    let Some(user) = wanted.user else { return Ok(identity) };
    match account_of(&user) {
        Some((namespace, name)) => check_part(rbac, &identity, "", "serviceaccounts", "", namespace, name)?,
        None => check_part(rbac, &identity, "", "users", "", "", &user)?,
    }
    for group in &wanted.groups {
        check_part(rbac, &identity, "", "groups", "", "", group)?;
    }
    for (key, values) in &wanted.extra {
        for value in values {
            check_part(rbac, &identity, "authentication.k8s.io", "userextras", key, "", value)?;
        }
    }
    if !wanted.uid.is_empty() {
        check_part(rbac, &identity, "authentication.k8s.io", "uids", "", "", &wanted.uid)?;
    }
    let groups = groups(&user, wanted.groups);
    Ok(Identity {
        user,
        uid: wanted.uid,
        groups,
        extra: wanted.extra,
        impersonator: Some(Box::new(identity)),
        ..Identity::default()
    })
}

fn check_part(
    rbac: &Rbac,
    identity: &Identity,
    group: &str,
    resource: &str,
    subresource: &str,
    namespace: &str,
    name: &str,
) -> Result<(), ApiError> {
    let object = Object { group, resource, subresource, namespace, name };
    rbac.authorize(identity, &Action::on("impersonate", object))
}

struct Wanted {
    user: Option<String>,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

fn wanted(headers: &HeaderMap) -> Result<Wanted, ApiError> {
    let unreadable = || ApiError::bad_request("an impersonation header is not readable text");
    let text = |value: &http::HeaderValue| value.to_str().map(str::to_owned).map_err(|_| unreadable());
    let first = |name: &str| headers.get(name).map(text).transpose();
    let user = first(USER)?.filter(|user| !user.is_empty());
    let uid = first(UID)?.unwrap_or_default();
    let groups: Vec<String> = headers.get_all(GROUP).iter().map(text).collect::<Result<_, _>>()?;
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let key = percent_decode(key).unwrap_or_else(|| key.to_owned());
            extra.entry(key).or_default().push(text(value)?);
        }
    }
    if groups.len() + extra.values().map(Vec::len).sum::<usize>() > PARTS_MAX {
        return Err(ApiError::bad_request("too many impersonation headers"));
    }
    let asks_for_more = !groups.is_empty() || !extra.is_empty() || !uid.is_empty();
    if user.is_none() && asks_for_more {
        let mut parts: Vec<String> = groups.iter().map(|group| format!("{{Group  {group}    }}")).collect();
        for (key, values) in &extra {
            let part = |value| format!("{{UserExtra  {value}  authentication.k8s.io/v1  {key}}}");
            parts.extend(values.iter().map(part));
        }
        if !uid.is_empty() {
            parts.push(format!("{{UID  {uid}  authentication.k8s.io/v1  }}"));
        }
        let parts = parts.join(" ");
        return Err(ApiError::bad_request(format!("requested [{parts}] without impersonating a user")));
    }
    Ok(Wanted { user, uid, groups, extra })
}

/// The groups of the impersonated user; if none are named, those that follow from the user name.
fn groups(user: &str, named: Vec<String>) -> Vec<String> {
    let mut groups = match (named.is_empty(), account_of(user)) {
        (true, Some((namespace, _))) => account_groups(namespace),
        _ => named,
    };
    let has =
        |groups: &[String], wanted: &[&str]| groups.iter().any(|group| wanted.contains(&group.as_str()));
    match user == ANONYMOUS {
        true if !has(&groups, &[UNAUTHENTICATED]) => groups.push(UNAUTHENTICATED.to_owned()),
        false if !has(&groups, &[AUTHENTICATED, UNAUTHENTICATED]) => groups.push(AUTHENTICATED.to_owned()),
        _ => {}
    }
    groups
}
