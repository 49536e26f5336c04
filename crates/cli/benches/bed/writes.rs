//! The write requests of the controllers, from the audit log of an API server: counts by verb and resource.

use std::collections::BTreeMap;

use serde_json::Value;

/// Who the controllers are in the control plane.
const ACCOUNT: &str = "system:serviceaccount:karmada-system:longshore-controllers";
/// And in members.
const MEMBER_ACCOUNT: &str = "system:serviceaccount:karmada-cluster:";
/// What goes on whether anything is to be done or not.
const ALWAYS: [&str; 2] = ["leases", "clusters"];

/// How often which request was made, by verb and resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writes(BTreeMap<String, usize>);

impl Writes {
    /// What the controllers wrote to the control plane.
    pub fn in_control(audit: &[Value]) -> Self {
        Self::by(audit, |user| user == ACCOUNT)
    }

    /// What they wrote to a member.
    pub fn in_member(audit: &[Value]) -> Self {
        Self::by(audit, |user| user.starts_with(MEMBER_ACCOUNT))
    }

    fn by(audit: &[Value], is_ours: impl Fn(&str) -> bool) -> Self {
        let mut counts = BTreeMap::new();
        for entry in audit {
            let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let resource = text("/objectRef/resource");
            if !is_ours(text("/user/username")) || ALWAYS.contains(&resource) {
                continue;
            }
            let part = match text("/objectRef/subresource") {
                "" => String::new(),
                part => format!("/{part}"),
            };
            let refused =
                entry.pointer("/responseStatus/code").and_then(Value::as_u64).is_some_and(|code| code >= 400);
            let how = if refused { ", refused" } else { "" };
            *counts.entry(format!("{} {resource}{part}{how}", text("/verb"))).or_default() += 1;
        }
        Self(counts)
    }

    /// What came since then.
    pub fn since(&self, before: &Self) -> Self {
        let new = |(what, count): (&String, &usize)| {
            let count = count - before.0.get(what).copied().unwrap_or_default();
            (count > 0).then(|| (what.clone(), count))
        };
        Self(self.0.iter().filter_map(new).collect())
    }

    /// One line for each, per template.
    pub fn told(&self, templates: usize) -> Vec<String> {
        let each = |count: usize| count as f64 / templates as f64;
        let sum: usize = self.0.values().sum();
        let lines = self.0.iter().map(|(what, count)| format!("{:8.2} {what}", each(*count)));
        std::iter::once(format!("{:8.2} writes per template", each(sum))).chain(lines).collect()
    }
}
