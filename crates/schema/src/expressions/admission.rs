//! The variables of admission expressions: `object`, `oldObject`, `request`, `authorizer`, `params` and their kin.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::{Environment, Field, Object, Type};

use super::hooks;

/// What an expression about writes may use besides the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Conditions of webhooks.
    Webhook,
    /// Policies.
    Policy {
        /// Whether the policy has parameters.
        has_params: bool,
    },
    /// What policies say when something does not hold; rights are not asked about for that.
    Message {
        /// Whether the policy has parameters.
        has_params: bool,
    },
}

impl Scope {
    /// The same for a message about what does not hold.
    pub fn of_message(self) -> Self {
        match self {
            Self::Policy { has_params } => Self::Message { has_params },
            other => other,
        }
    }
}

/// The variables of an expression about a write, and the variables that its policy defines, by type.
pub fn environment(scope: Scope, defined: &BTreeMap<String, Type>) -> Environment {
    let mut variables = BTreeMap::from([
        ("object".to_owned(), Type::ANY),
        ("oldObject".to_owned(), Type::ANY),
        ("request".to_owned(), request()),
    ]);
    if !matches!(scope, Scope::Message { .. }) {
        variables.insert("authorizer".to_owned(), Type::AUTHORIZER);
        variables.insert("authorizer.requestResource".to_owned(), Type::RESOURCE_CHECK);
    }
    if let Scope::Policy { has_params } | Scope::Message { has_params } = scope {
        variables.insert("namespaceObject".to_owned(), Type::ANY);
        if has_params {
            variables.insert("params".to_owned(), Type::ANY);
        }
        if !defined.is_empty() {
            variables.insert("variables".to_owned(), object("kubernetes.variables", defined.clone()));
        }
    }
    Environment { variables, hooks: hooks() }
}

fn request() -> Type {
    let three = |name: &str, last: &str| {
        let fields = ["group", "version", last].map(|key| (key.to_owned(), Type::TEXT));
        object(name, fields.into_iter().collect())
    };
    let user = [
        ("username", Type::TEXT),
        ("uid", Type::TEXT),
        ("groups", Type::list(Type::TEXT)),
        ("extra", Type::map(Type::list(Type::TEXT))),
    ];
    let user = user.map(|(key, kind)| (key.to_owned(), kind)).into_iter().collect();
    let kind = three("kubernetes.GroupVersionKind", "kind");
    let resource = three("kubernetes.GroupVersionResource", "resource");
    let fields = [
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("subResource", Type::TEXT),
        ("requestKind", kind),
        ("requestResource", resource),
        ("requestSubResource", Type::TEXT),
        ("name", Type::TEXT),
        ("namespace", Type::TEXT),
        ("operation", Type::TEXT),
        ("userInfo", object("kubernetes.UserInfo", user)),
        ("dryRun", Type::Bool),
        ("options", Type::ANY),
    ];
    let fields = fields.map(|(key, kind)| (key.to_owned(), kind)).into_iter().collect();
    object("kubernetes.AdmissionRequest", fields)
}

fn object(name: &str, fields: BTreeMap<String, Type>) -> Type {
    let fields = fields.into_iter().map(|(key, kind)| (key.clone(), Field { key, kind })).collect();
    Type::Object(Arc::new(Object { name: name.to_owned(), fields }))
}
