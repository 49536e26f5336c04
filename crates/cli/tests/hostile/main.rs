//! A hostile tenant. Eve has the role that Longshore ships for tenants, Mallory every right in one namespace; both try
//! to reach beyond it. The members are read as an administrator afterwards: no foreign object has changed, and every
//! new object follows from a template of the tenant (M3).

mod attacks;
mod ground;

use ground::Environment;

/// Plays one attack on a control plane of its own.
async fn play(attack: impl AsyncFnOnce(&Environment)) {
    let mut ground = Environment::start().await;
    attack(&ground).await;
    ground.nothing_foreign_changed().await;
}

#[tokio::test]
async fn overrides_do_not_change_what_an_object_is() {
    play(attacks::overrides).await;
}

#[tokio::test]
async fn bindings_by_hand_reach_their_own_namespace_only() {
    play(attacks::bindings).await;
}

#[tokio::test]
async fn works_by_hand_are_refused_or_without_effect() {
    play(attacks::works).await;
}

#[tokio::test]
async fn names_do_not_lead_anywhere_else() {
    play(attacks::names).await;
}

#[tokio::test]
async fn dependencies_do_not_come_from_other_namespaces() {
    play(attacks::dependencies).await;
}

#[tokio::test]
async fn forged_marks_do_not_touch_what_they_name() {
    play(attacks::marks).await;
}

#[tokio::test]
async fn owners_in_other_namespaces_are_not_concerned() {
    play(attacks::owners).await;
}

#[tokio::test]
async fn floods_do_not_keep_others_out() {
    play(attacks::floods).await;
}
