//! What a step changed for one template: the policy that claims it, the copy in each member, what is pending and why.

use std::collections::BTreeSet;

use decide::activation::{Activation, Follows, HoldWhy};
use decide::claim::ClaimReason;
use scenario::{Subject, TemplateState};
use serde_json::Value;

use crate::terminal_text::Paint;

/// How something is compared with before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It was not so before.
    New,
    /// It was different.
    Changed,
    /// It is not so any more.
    Gone,
    /// It was so before.
    Same,
}

impl Mark {
    /// The sign before a line.
    pub fn sign(self) -> char {
        match self {
            Mark::New => '+',
            Mark::Changed => '~',
            Mark::Gone => '-',
            Mark::Same => ' ',
        }
    }

    /// The sign and what it means.
    pub fn shown(self, paint: Paint) -> String {
        let meaning = match self {
            Mark::New => "new",
            Mark::Changed => "changed",
            Mark::Gone => "gone",
            Mark::Same => "as before",
        };
        self.painted(paint, &format!("{} {meaning}", self.sign()))
    }

    /// A text in the colour that says how it compares.
    pub fn painted(self, paint: Paint, text: &str) -> String {
        match self {
            Mark::New => paint.green(text),
            Mark::Changed => paint.yellow(text),
            Mark::Gone => paint.red(text),
            Mark::Same => text.to_owned(),
        }
    }
}

/// One line about a template.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    /// How it compares with before.
    pub mark: Mark,
    /// What it is about.
    pub label: String,
    /// What there is to say.
    pub text: String,
}

/// Everything about a template, each with how it compares with before.
pub fn changes(subject: &Subject<'_>) -> Vec<Change> {
    let before = subject.before.as_ref().map(facts).unwrap_or_default();
    let now = subject.now.as_ref().map(facts).unwrap_or_default();
    let labels: BTreeSet<&(u8, String)> = before.iter().chain(&now).map(|(label, _)| label).collect();
    let of = |facts: &[Fact], wanted: &(u8, String)| {
        facts.iter().find(|(label, _)| label == wanted).map(|(_, text)| text.clone())
    };
    let change = |label: &(u8, String)| {
        let (mark, text) = match (of(&before, label), of(&now, label)) {
            (Some(before), Some(now)) if before == now => (Mark::Same, now),
            (Some(before), Some(now)) if label.0 == MEMBER => {
                (Mark::Changed, format!("{now} (was {before})"))
            }
            (Some(_), Some(now)) => (Mark::Changed, now),
            (None, now) => (Mark::New, now.unwrap_or_default()),
            (Some(before), None) if label.0 == MEMBER => (Mark::Gone, before),
            (Some(_), None) => (Mark::Gone, "not any more".to_owned()),
        };
        Change { mark, label: label.1.clone(), text }
    };
    labels.into_iter().map(change).collect()
}

/// A label, with its place in the order, and what there is to say.
type Fact = ((u8, String), String);

const CLAIM: u8 = 0;
const KEPT: u8 = 1;
const MEMBER: u8 = 2;
const WAITS: u8 = 3;
const HELD: u8 = 4;

fn facts(found: &TemplateState) -> Vec<Fact> {
    let fact = |order: u8, label: &str, text: String| ((order, label.to_owned()), text);
    let owner = found.claimed_by.clone().unwrap_or_else(|| "nobody".to_owned());
    let mut facts = vec![fact(CLAIM, "claimed by", owner)];
    facts.extend(found.members.iter().map(|(member, object)| fact(MEMBER, member, copy(object))));
    let Some(why) = &found.why else { return facts };
    if let ClaimReason::Kept { better: Some(_), .. } = &why.claim.reason {
        facts.push(fact(KEPT, "because", why.claim.to_string()));
    }
    if let Activation::Hold(hold) = &why.activation
        && is_behind(hold)
    {
        facts.push(fact(WAITS, "waits", hold.to_string()));
    }
    if !why.suspended.is_empty() {
        let members = why.suspended.join(", ");
        facts.push(fact(HELD, "held back", format!("nothing is written to {members} while it is suspended")));
    }
    facts
}

/// Whether there is something that waits: a binding that follows its policy as it is now is behind nothing.
fn is_behind(hold: &HoldWhy) -> bool {
    match hold {
        HoldWhy::Lazy { generation, follows, .. } | HoldWhy::Static { generation, follows, .. } => {
            *follows != Follows::Itself { generation: *generation }
        }
        HoldWhy::MissingOverrides { .. } | HoldWhy::Unclaimed | HoldWhy::Foreign => true,
    }
}

/// What a member has, in a few words.
fn copy(object: &Value) -> String {
    let image = object.pointer("/spec/template/spec/containers/0/image").and_then(Value::as_str);
    match (object.pointer("/spec/replicas").and_then(Value::as_i64), image) {
        (Some(1), Some(image)) => format!("1 replica of {image}"),
        (Some(replicas), Some(image)) => format!("{replicas} replicas of {image}"),
        _ => "has it".to_owned(),
    }
}
