//! Apply conflicts: fields that an applier sets and others own, as Kubernetes' 409.

use serde_json::{Value, json};

use super::managed::{Operation, Owner};
use super::set::PathSet;
use apimachinery::error::ApiError;
use apimachinery::gotext;

/// What one owner would lose.
#[derive(Debug, Clone)]
pub(super) struct Conflict {
    pub owner: Owner,
    pub paths: PathSet,
}

/// The answer to an apply that met these conflicts.
pub(super) fn refusal(mut conflicts: Vec<Conflict>) -> ApiError {
    conflicts.sort_by_cached_key(|conflict| conflict.owner.sort_key());
    let mut causes = Vec::new();
    let mut lines = Vec::new();
    for conflict in &conflicts {
        let owner = described(&conflict.owner);
        lines.push(format!("conflicts with {owner}:"));
        conflict.paths.for_each(&mut |path| {
            let path: String = path.iter().map(|element| element.to_string()).collect();
            lines.push(format!("- {path}"));
            causes.push(json!({
                "reason": "FieldManagerConflict",
                "message": format!("conflict with {owner}"),
                "field": path,
            }));
        });
    }
    ApiError::apply_conflict(message(&causes, &lines), causes)
}

fn message(causes: &[Value], lines: &[String]) -> String {
    match causes {
        [only] => {
            let text = |name: &str| only[name].as_str().unwrap_or_default();
            format!("Apply failed with 1 conflict: {}: {}", text("message"), text("field"))
        }
        many => format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n")),
    }
}

fn described(owner: &Owner) -> String {
    let mut text = gotext::quoted(&owner.manager);
    if !owner.subresource.is_empty() {
        text = format!("{text} with subresource {}", gotext::quoted(&owner.subresource));
    }
    if owner.operation == Operation::Update {
        text = format!("{text} using {}", owner.api_version);
    }
    text
}
