//! Prints the explanation of a template: its policy, what is in effect, what is pending, where it runs. One screen, 80
//! columns, readable without colour.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use decide::activation::{Activation, FollowWhy, HoldWhy};
use decide::claim::ClaimReason;
use decide::placement::Placement;
use decide::why::{ClusterWhy, InEffect, Staging, Verdict, Why};
use decide::{PolicyKey, TemplateKey};
use plane::reports::Onto;

use crate::terminal_text::{Paint, some_of, wrapped};
use crate::why::Story;

/// How wide the column of labels is.
const LABEL_COLUMN_WIDTH: usize = 12;
/// How many policies that lost, and that do not match, are named.
const OTHERS_MAX: usize = 8;
/// How many chosen clusters have a line of their own.
const CHOSEN_MAX: usize = 10;
/// How many clusters of one verdict are named.
const NAMES_MAX: usize = 5;

/// The whole story.
pub fn shown(story: &Story, paint: Paint) -> String {
    let why = &story.why;
    let mut text = format!("{}\n\n", paint.strong(&why.template.to_string()));
    owner(&mut text, why);
    in_effect(&mut text, why, paint);
    for hold in &why.holds {
        let _ = writeln!(text, "{}", paint.yellow(&line("Suspended", &format!("{hold}"))));
    }
    clusters(&mut text, story);
    if let Some(staging) = &why.staging {
        staged(&mut text, staging, paint);
    }
    if let Some(staying) = &why.staying {
        let _ = writeln!(text, "{}", paint.yellow(&line("Stays", &sentence(&staying.to_string()))));
    }
    if let Some(last_copy) = &why.last_copy {
        let _ = writeln!(text, "{}", paint.yellow(&line("Last copy", last_copy)));
    }
    if let Some(onto) = &story.onto {
        steps(&mut text, why, onto);
    }
    text
}

/// The rollout, and each cluster until everything has passed.
fn staged(text: &mut String, staging: &Staging, paint: Paint) {
    let done = staging.progress.as_ref().is_some_and(|one| one.phase == api::RolloutPhase::Succeeded);
    let said = line("Rollout", &sentence(&staging.to_string()));
    let _ = writeln!(text, "{}", if done { said } else { paint.yellow(&said) });
    for cluster in staging.clusters.iter().filter(|_| !done).take(CHOSEN_MAX) {
        let said = format!("{} (stage {}) {}", cluster.name, cluster.stage, cluster.state);
        let _ = writeln!(text, "{}", line("", &said));
    }
}

fn line(label: &str, said: &str) -> String {
    wrapped(&format!("{label:<LABEL_COLUMN_WIDTH$}"), said)
}

fn owner(text: &mut String, why: &Why) {
    let claim = match &why.claim.reason {
        // Policies that rank higher are printed with the other candidates.
        ClaimReason::Kept { policy, .. } => format!("{policy} claims it and still matches"),
        _ => why.claim.to_string(),
    };
    let _ = writeln!(text, "{}", line("Policy", &sentence(&claim)));
    if let Some(from) = &why.taken_from {
        let _ = writeln!(text, "{}", line("", &format!("It was taken from {from} by preemption.")));
    }
    let lost: Vec<String> =
        why.rivals.iter().map(|rival| format!("{}: {}", rival.policy, rival.because)).collect();
    others(text, "  lost", &lost);
    let strangers: Vec<String> = why.bystanders.iter().map(ToString::to_string).collect();
    others(text, "  no match", &strangers);
}

fn others(text: &mut String, label: &str, said: &[String]) {
    for one in said.iter().take(OTHERS_MAX) {
        let _ = writeln!(text, "{}", line(label, one));
    }
    match said.len().saturating_sub(OTHERS_MAX) {
        0 => {}
        more => drop(writeln!(text, "{}", line("", &format!("and {more} more (-o yaml names them)")))),
    }
}

fn in_effect(text: &mut String, why: &Why, paint: Paint) {
    if let Some(effect) = &why.in_effect {
        let _ = writeln!(text, "{}", line("In effect", &effective(effect, why.owner.as_ref())));
    }
    let waits = match &why.activation {
        Activation::Hold(HoldWhy::Unclaimed) if why.orphaned.is_none() || why.waits_for_policy => None,
        Activation::Hold(HoldWhy::Lazy { .. } | HoldWhy::Static { .. }) if why.is_up_to_date() => None,
        Activation::Hold(hold) => Some(hold.to_string()),
        Activation::Adopt => Some(Activation::Adopt.to_string()),
        Activation::Follow(FollowWhy::Immediate) => None,
        Activation::Follow(follow) => Some(follow.to_string()),
    };
    if let Some(waits) = waits {
        let label = match &why.activation {
            Activation::Hold(HoldWhy::Unclaimed) => "Orphaned",
            Activation::Hold(_) => "Waits",
            Activation::Follow(_) | Activation::Adopt => "Acts",
        };
        let _ = writeln!(text, "{}", paint.yellow(&line(label, &sentence(&waits))));
    }
    if let Some(next) = &why.next {
        let by = if why.owner.as_ref() == Some(&next.policy) {
            String::new()
        } else {
            format!(", by {}", next.policy)
        };
        let _ = writeln!(text, "{}", line("", &format!("Then{by}: {}", placed(&next.placement))));
        // A reconcile keeps the owner, if there is one; a change may choose another one.
        if by.is_empty() || why.owner.is_none() {
            let _ = writeln!(text, "{}", line("", &format!("Now: {}", reconcile(&why.template))));
        }
    }
    if why.waits_for_policy {
        let said = "It was changed while no policy matched it: the next policy that matches acts at once \
                    (S3).";
        let _ = writeln!(text, "{}", paint.yellow(&line("Waits", said)));
    }
    if let Some(frozen) = &why.frozen {
        let said = format!("What members have stays as it is, because {frozen}.");
        let _ = writeln!(text, "{}", paint.yellow(&line("Frozen", &said)));
    }
    if let Some(refusal) = &why.refusal {
        let _ = writeln!(text, "{}", paint.red(&line("Refused", &sentence(&refusal.to_string()))));
    }
    if let Some(rejection) = &why.rejection {
        let said = format!("The binding cannot be changed, so members keep what they have: {rejection}.");
        let _ = writeln!(text, "{}", paint.red(&line("Refused", &said)));
    }
    if !why.required_by.is_empty() {
        let names: Vec<&str> = why.required_by.iter().map(|binding| binding.name.as_str()).collect();
        let _ = writeln!(text, "{}", line("Needed by", &format!("binding {}", names.join(", "))));
    }
}

/// What lets it take effect without a change.
fn reconcile(key: &TemplateKey) -> String {
    let kind = key.kind.to_lowercase();
    let group = if key.group().is_empty() { String::new() } else { format!(".{}", key.group()) };
    let namespace = if key.namespace.is_empty() { String::new() } else { format!(" -n {}", key.namespace) };
    format!("longshore reconcile {kind}{group}/{}{namespace}", key.name)
}

/// Which generation of which policy the binding repeats, and whether there is a newer one.
fn effective(effect: &InEffect, owner: Option<&PolicyKey>) -> String {
    let policy = &effect.policy;
    let generation = match effect.generation {
        0 => format!("the state that Karmada left for {policy}"),
        generation => format!("generation {generation} of {policy}"),
    };
    let newest = match effect.newest {
        Some(_) if policy.policy.as_ref() == owner && effect.is_current => match effect.generation {
            0 => ", as the policy is now".to_owned(),
            _ => ", the newest".to_owned(),
        },
        Some(newest) if policy.policy.as_ref() == owner => format!("; the newest is {newest}"),
        Some(newest) => owner.map(|owner| format!("; {owner} is at generation {newest}")).unwrap_or_default(),
        None => String::new(),
    };
    let template = if effect.template_changed { "; the template was changed since" } else { "" };
    format!("{generation}{newest}{template}")
}

/// Where a placement puts it, in one sentence.
fn placed(placement: &Placement) -> String {
    match placement {
        Placement::Scheduled(schedule) if schedule.affinity_name.is_empty() => {
            format!("{}.", schedule.division)
        }
        Placement::Scheduled(schedule) => {
            format!("{}, by the affinity group {}.", schedule.division, schedule.affinity_name)
        }
        Placement::Nowhere { failure, .. } => format!("nowhere: {failure}"),
        Placement::Kept { failure, .. } => format!("as before: {failure}"),
        Placement::Skipped(_) | Placement::Left { .. } | Placement::Unchanged => placement.to_string(),
    }
}

fn clusters(text: &mut String, story: &Story) {
    let why = &story.why;
    let Some(placement) = &why.placement else {
        let said = "none: it has no binding, so nothing is propagated.";
        let _ = writeln!(text, "{}", line("Clusters", said));
        return;
    };
    let _ = writeln!(text, "{}", line("Clusters", &sentence(&placed(placement))));
    let is_meant = |name: &str| story.onto.as_ref().is_none_or(|onto| onto.cluster == name);
    let shown: Vec<&ClusterWhy> = why.clusters.iter().filter(|part| is_meant(&part.name)).collect();
    let is_chosen = |part: &ClusterWhy| matches!(part.verdict, Verdict::Chosen { .. } | Verdict::Missing);
    let has_own_line = shown.iter().filter(|part| is_chosen(part)).count() <= CHOSEN_MAX;
    // Those of one verdict stand in one line, so that hundreds of clusters still fit on a screen.
    let mut alike: Vec<(String, Vec<&str>)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for part in shown {
        let said = described(story, part);
        let stands_alone = has_own_line && is_chosen(part);
        let place = *places.entry(said.clone()).or_insert(alike.len());
        match alike.get_mut(place).filter(|_| !stands_alone) {
            Some((_, names)) => names.push(&part.name),
            None => alike.push((said, vec![&part.name])),
        }
    }
    let gone = story.members.iter().filter(|(name, _)| !why.clusters.iter().any(|part| part.name == **name));
    for (name, delivery) in gone.filter(|(name, _)| is_meant(name)) {
        alike.push((format!("no longer known; {delivery}"), vec![name]));
    }
    for (said, names) in alike {
        let label = some_of(&names, NAMES_MAX);
        let _ = match label.len() > LABEL_COLUMN_WIDTH - 3 {
            true => writeln!(text, "{}\n{}", wrapped("  ", &label), line("", &said)),
            false => writeln!(text, "{}", line(&format!("  {label}"), &said)),
        };
    }
}

/// Verdict, overrides, suspension, and what the member says.
fn described(story: &Story, part: &ClusterWhy) -> String {
    let mut said = part.verdict.to_string();
    if !part.overrides.is_empty() {
        let names: Vec<String> = part.overrides.iter().map(override_name).collect();
        let _ = write!(said, "; changed by {}", names.join(", "));
    }
    if let Some(failed) = &part.failed_override {
        let _ = write!(said, "; gets nothing new: {failed}");
    }
    if part.suspended {
        said.push_str("; suspended");
    }
    let is_chosen = matches!(part.verdict, Verdict::Chosen { .. });
    let _ = match (story.members.get(&part.name), &part.unknown) {
        (Some(delivery), _) => write!(said, "; {delivery}"),
        (None, Some(unknown)) if is_chosen => write!(said, "; {unknown}"),
        (None, _) => Ok(()),
    };
    said
}

fn override_name(PolicyKey { namespace, name }: &PolicyKey) -> String {
    match namespace.as_str() {
        "" => format!("ClusterOverridePolicy {name}"),
        namespace => format!("OverridePolicy {namespace}/{name}"),
    }
}

fn steps(text: &mut String, why: &Why, onto: &Onto) {
    let Onto { cluster, steps } = onto;
    let is_chosen =
        |part: &ClusterWhy| part.name == *cluster && matches!(part.verdict, Verdict::Chosen { .. });
    if steps.is_empty() {
        let said = match why.clusters.iter().any(is_chosen) {
            true => format!("Nothing keeps it from {cluster}."),
            false => format!("Nothing keeps it from {cluster}: the delivery is in progress."),
        };
        let _ = writeln!(text, "\n{said}");
        return;
    }
    let _ = writeln!(text, "\nTo get it onto {cluster} you would have to");
    for (index, step) in steps.iter().enumerate() {
        let _ = writeln!(text, "{}", wrapped(&format!("  {}. ", index + 1), &step.to_string()));
    }
}

/// The same with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    let stop = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}
