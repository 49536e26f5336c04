//! Permission checks as values of expressions: what is asked, what was decided, and what that costs.

use crate::budget::tenth;

/// The type of the authorizer of one user or service account.
pub(crate) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
/// The type of a check on a path.
pub(crate) const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
/// The type of a check on a group that names no resource yet.
pub(crate) const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
/// The type of a check on a resource.
pub(crate) const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
/// The type of the decision.
pub(crate) const DECISION: &str = "kubernetes.authorization.Decision";

/// What a decision costs, so that an expression can ask for two.
pub(crate) const CHECK_COST: u64 = 350_000;

/// A permission check, as far as the expression has specified it; everything else is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessCheck {
    /// The service account that is checked, by namespace and name; none for the requesting user.
    pub account: Option<(String, String)>,
    /// The resource or path.
    pub on: Target,
}

/// The resource or path of a permission check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Target {
    /// Not specified yet.
    #[default]
    Unspecified,
    /// A path that is no resource.
    Path(String),
    /// A group, whose resource has not been named yet.
    Group(String),
    /// A resource.
    Resource(Resource),
}

/// A resource, a part of one, or one object of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resource {
    /// The group of the resource.
    pub group: String,
    /// Its plural.
    pub resource: String,
    /// The part of the object that is meant.
    pub subresource: String,
    /// The namespace, empty for the cluster.
    pub namespace: String,
    /// The name of the object, empty for all.
    pub name: String,
}

/// The decision of a permission check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub is_allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong when it was decided.
    pub error: Option<String>,
}

impl AccessCheck {
    /// The name of its type in expressions.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.on {
            Target::Unspecified => AUTHORIZER,
            Target::Path(_) => PATH_CHECK,
            Target::Group(_) => GROUP_CHECK,
            Target::Resource(_) => RESOURCE_CHECK,
        }
    }

    /// Whether it is specified far enough to decide.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.on, Target::Path(_) | Target::Resource(_))
    }
}

/// What reading a selector of so many characters costs: a list, and a structure with a list for every two characters.
pub(crate) fn selector_cost(characters: u64) -> u64 {
    let requirements = characters.div_ceil(2).saturating_mul(50);
    tenth(characters).saturating_add(requirements).saturating_add(10)
}
