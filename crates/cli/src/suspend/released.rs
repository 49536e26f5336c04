//! What a change lets go: templates and clusters that are held now and would not be then. Pure.

use std::fmt::Write as _;

use decide::binding::is_held;
use decide::works::targets;
use decide::world::{Answers, Change};
use decide::{TemplateKey, World};

use crate::text::wrapped;

/// How many templates are named.
const SHOWN_MAX: usize = 20;

/// A template and the clusters in which it would be let go.
#[derive(Debug, PartialEq, Eq)]
pub struct Released {
    /// The template.
    pub template: TemplateKey,
    /// The clusters.
    pub clusters: Vec<String>,
}

/// What changes would let go.
pub fn released(world: &World, change: &Change) -> Result<Vec<Released>, decide::world::ChangeError> {
    let mut then = world.clone();
    let touched = then.apply(change)?;
    then.settle(&touched, Answers::BRAIN);
    let mut all = Vec::new();
    for (key, after) in then.bindings.iter() {
        let Some(before) = world.bindings.get(key) else { continue };
        let let_go = |name: &String| is_held(before, name) && !is_held(after, name);
        let clusters: Vec<String> =
            targets(&after.spec).into_iter().map(|target| target.name).filter(let_go).collect();
        if !clusters.is_empty() {
            all.push(Released { template: TemplateKey::of(after), clusters });
        }
    }
    all.sort_by_key(|one| one.template.to_string());
    Ok(all)
}

/// The list as text.
pub fn shown(released: &[Released]) -> String {
    let mut text = String::new();
    for one in released.iter().take(SHOWN_MAX) {
        let label = format!("  {}: ", one.template);
        let _ = writeln!(text, "{}", wrapped(&label, &format!("to {}", one.clusters.join(", "))));
    }
    if let Some(more) = released.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {more} more");
    }
    text
}
