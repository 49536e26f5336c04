//! The limits that annotations set on what one act may do at once (M4).

use std::collections::BTreeMap;

use api::records::{MAX_DELETED, MAX_MOVED};

/// How much one act may do at once; nothing said is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    /// Templates that leave a cluster and enter another one.
    pub moved: Option<usize>,
    /// Objects that vanish from a member.
    pub deleted: Option<usize>,
}

impl Budget {
    /// What the annotations of an object allow.
    pub fn on(annotations: &BTreeMap<String, String>) -> Self {
        let limit = |key: &str| annotations.get(key)?.parse().ok();
        Self { moved: limit(MAX_MOVED), deleted: limit(MAX_DELETED) }
    }

    /// The smaller limit of both.
    pub fn stricter(self, other: Self) -> Self {
        let smaller = |one: Option<usize>, two: Option<usize>| one.into_iter().chain(two).min();
        Self { moved: smaller(self.moved, other.moved), deleted: smaller(self.deleted, other.deleted) }
    }

    /// This one, and another where it says nothing.
    pub fn or(self, usual: Self) -> Self {
        Self { moved: self.moved.or(usual.moved), deleted: self.deleted.or(usual.deleted) }
    }

    /// True when there is a limit.
    pub fn is_limited(self) -> bool {
        self.moved.is_some() || self.deleted.is_some()
    }
}
