//! Templates to which the same happens, whatever their numbers of replicas, and what that is in each cluster, in the
//! order in which it happens: copies appear before the copies that they replace go (M1).

use std::collections::BTreeMap;
use std::fmt;

use decide::plan::{Action, ClusterPlan, Plan, TemplatePlan};

use crate::terminal_text::some_of;

/// Templates to which the same happens; there is at least one.
pub struct Group<'p> {
    first: &'p TemplatePlan,
    rest: Vec<&'p TemplatePlan>,
}

/// What happens in a cluster, without numbers, in the order in which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A copy appears.
    Create,
    /// A copy gets other replicas.
    Scale,
    /// A copy changes.
    Update,
    /// A copy is dispatched to again.
    Resume,
    /// A copy is held.
    Suspend,
    /// A copy goes.
    Delete,
}

/// What happens to a group in some clusters.
#[derive(Debug, PartialEq, Eq)]
pub struct Happening<'p> {
    /// What.
    pub step: Step,
    /// It waits until it is resumed.
    pub suspended: bool,
    /// It comes after copies have appeared elsewhere.
    pub is_last: bool,
    /// Clusters that are suspended or not ready, and whose copies have to be applied first.
    held_by: &'p [String],
    /// The stage in which it happens, or after which a copy goes; empty without stages.
    stage: &'p str,
    before: Range,
    after: Range,
    /// Where.
    pub clusters: Vec<&'p str>,
}

/// The replicas of a group: the fewest and the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range(i32, i32);

/// Templates to which the same happens, in the order of the first of them; `apart` leaves each by itself.
pub fn groups(plan: &Plan, apart: bool) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for one in plan.templates.values() {
        let TemplatePlan { template, claim, held, clusters, fields, nowhere, why } = one;
        let said = |change: &'_ ClusterPlan| (step(change), change.suspended, change.stage.clone());
        let steps: Vec<(&String, (Step, bool, String))> =
            clusters.iter().map(|(name, change)| (name, said(change))).collect();
        let same = match apart {
            true => template.to_string(),
            false => format!("{} {claim:?} {held:?} {steps:?} {fields:?} {nowhere} {why}", template.kind),
        };
        let index = *known.entry(same).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.rest.push(one),
            None => groups.push(Group { first: one, rest: Vec::new() }),
        }
    }
    groups
}

impl<'p> Group<'p> {
    /// The first of them, which stands for all but in numbers.
    pub fn first(&self) -> &'p TemplatePlan {
        self.first
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.rest.len() + 1
    }

    /// The templates, the first few by name.
    pub fn names(&self, most: usize) -> String {
        if self.rest.is_empty() {
            return self.first.template.to_string();
        }
        let name = |one: &TemplatePlan| match one.template.namespace.as_str() {
            "" => one.template.name.clone(),
            namespace => format!("{namespace}/{}", one.template.name),
        };
        let names: Vec<String> = self.all().map(name).collect();
        format!("{} × {}: {}", self.len(), self.first.template.kind, some_of(&names, most))
    }

    /// What happens, in its order; clusters in which the same happens stand together.
    pub fn happenings(&self) -> Vec<Happening<'p>> {
        let mut all: Vec<Happening<'p>> = Vec::new();
        let is_moved = self.first.clusters.values().any(|change| step(change) == Step::Create);
        for (cluster, change) in self.first.clusters.iter() {
            let changes = self.all().filter_map(|one| one.clusters.get(cluster));
            let (mut before, mut after) = (Range::NONE, Range::NONE);
            for change in changes {
                let (was, is) = replicas(change);
                (before, after) = (before.with(was), after.with(is));
            }
            let (step, suspended) = (step(change), change.suspended);
            let is_last = step == Step::Delete && is_moved;
            let (held_by, clusters) = (change.held_by.as_slice(), vec![cluster.as_str()]);
            let stage = change.stage.as_str();
            let new = Happening { step, suspended, is_last, held_by, stage, before, after, clusters };
            let same = |known: &&mut Happening<'p>| {
                (known.step, known.suspended, known.before, known.after, known.held_by, known.stage)
                    == (step, suspended, before, after, held_by, stage)
            };
            match all.iter_mut().find(same) {
                Some(known) => known.clusters.push(cluster),
                None => all.push(new),
            }
        }
        all.sort_by_key(|one| one.step);
        all
    }

    fn all(&self) -> impl Iterator<Item = &'p TemplatePlan> {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }
}

fn step(change: &ClusterPlan) -> Step {
    match change.action {
        Action::Create { .. } => Step::Create,
        Action::Delete { .. } => Step::Delete,
        Action::Scale { .. } => Step::Scale,
        Action::Update => Step::Update,
        Action::Suspend => Step::Suspend,
        Action::Resume => Step::Resume,
    }
}

/// The replicas before and after.
fn replicas(change: &ClusterPlan) -> (i32, i32) {
    match change.action {
        Action::Create { replicas } => (0, replicas),
        Action::Delete { replicas } => (replicas, 0),
        Action::Scale { from, to } => (from, to),
        Action::Update | Action::Suspend | Action::Resume => (0, 0),
    }
}

impl Range {
    /// Of no template yet.
    const NONE: Self = Self(i32::MAX, i32::MIN);

    fn with(self, replicas: i32) -> Self {
        Self(self.0.min(replicas), self.1.max(replicas))
    }
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Range(least, most) if least == most => write!(formatter, "{least}"),
            Range(least, most) => write!(formatter, "{least}..{most}"),
        }
    }
}

impl fmt::Display for Happening<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |replicas: Range| match replicas {
            Range(_, 0) => String::new(),
            Range(1, 1) => " with 1 replica".to_owned(),
            range => format!(" with {range} replicas"),
        };
        let Self { before, after, .. } = self;
        match self.step {
            Step::Create => write!(formatter, "create{}", with(*after))?,
            Step::Delete if self.is_last => write!(formatter, "then delete{}", with(*before))?,
            Step::Delete => write!(formatter, "delete{}", with(*before))?,
            Step::Scale => write!(formatter, "scale from {before} to {after} replicas")?,
            Step::Update => write!(formatter, "update")?,
            Step::Suspend => return write!(formatter, "suspend"),
            Step::Resume => write!(formatter, "resume")?,
        }
        match (self.stage, self.step) {
            ("", _) => {}
            (stage, Step::Delete) => write!(formatter, " after stage {stage}")?,
            (stage, _) => write!(formatter, " in stage {stage}")?,
        }
        match self.held_by {
            _ if self.suspended => write!(formatter, ", held back until it is resumed"),
            [] => Ok(()),
            names => write!(formatter, ", held back until it is applied in {}", names.join(", ")),
        }
    }
}
