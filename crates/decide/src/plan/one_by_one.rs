//! The plan of changes under which every template stays by itself, as under most: each is settled in both
//! worlds and compared while it is at hand, and nothing of it is kept. Where templates concern each other it
//! gives up, and two whole worlds are settled instead.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use api::Binding;
use serde_json::Value;

use super::difference::{Comparison, Draft, View};
use super::{Plan, Texts};
use crate::binding::Interpretation;
use crate::placement::Recent;
use crate::template::{Template, TemplateKey};
use crate::world::{Answers, Rest, World};

/// The plan; none when the world is not at rest yet, or when templates concern each other.
pub(super) fn one_by_one(
    before: &World,
    mut after: World,
    touched: &BTreeSet<Arc<TemplateKey>>,
    answers: Answers<'_>,
) -> Option<Plan> {
    let (interpret, last) = (answers.interpret, RefCell::new(None));
    let answers = Answers { interpret: &|template| again(&last, template, interpret), ..answers };
    let comparison = Comparison { overrides_differ: before.overrides != after.overrides, answers };
    let (mut draft, mut texts) = (Draft::default(), Texts::default());
    let (mut recent_before, mut recent_after) = (Recent::default(), Recent::default());
    for key in touched {
        let binding_key = key.binding();
        let was = before.rest(key, &binding_key, answers, &mut recent_before, |_| {});
        let mut reason = None;
        let is = after.rest(key, &binding_key, answers, &mut recent_after, |decided| {
            reason = (!decided.is_settled()).then(|| texts.of(decided));
        });
        if was.is_news() || (is.bound && concerns_others(&was, &is)) {
            return None;
        }
        let views = (View::at(before, key, &was), View::at(&after, key, &is));
        comparison.template(key, &views.0, &views.1, reason, &mut draft);
        // Who comes later must see that the name is taken (C5).
        if let Some(binding) = is.binding.filter(|_| is.bound && !after.bindings.contains_key(&binding_key)) {
            after.put_binding(&binding_key, binding);
        }
    }
    let alone = before.attachments(answers).is_empty() && after.attachments(answers).is_empty();
    alone.then(|| draft.plan())
}

type Interpreted = (Arc<Value>, Interpretation);

/// The interpretation of an object; both worlds mostly have the same one, and ask in turn.
fn again(
    last: &RefCell<Option<Interpreted>>,
    template: &Template,
    interpret: impl Fn(&Template) -> Interpretation,
) -> Interpretation {
    let mut last = last.borrow_mut();
    match &*last {
        Some((object, known)) if Arc::ptr_eq(object, &template.object) => known.clone(),
        _ => last.insert((Arc::clone(&template.object), interpret(template))).1.clone(),
    }
}

/// True when the binding takes others along or is taken along.
fn concerns_others(was: &Rest, is: &Rest) -> bool {
    let concerns =
        |binding: &Arc<Binding>| binding.spec.propagate_deps || !binding.spec.required_by.is_empty();
    [&was.binding, &is.binding].into_iter().flatten().any(concerns)
}
