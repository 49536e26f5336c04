//! What may happen to the server in the model test, and how likely it is.

use proptest::prelude::*;

pub const NAMESPACES: [&str; 2] = ["red", "blue"];
pub const NAMES: [&str; 3] = ["x", "y", "z"];
pub const LABELS: [Option<&str>; 3] = [None, Some("1"), Some("2")];
pub const SELECTORS: [&str; 4] = ["", "l=1", "l!=1", "!l"];
pub const FINALIZERS: [&[&str]; 3] = [&[], &["a.io/x"], &["a.io/x", "a.io/y"]];

/// One of the two kinds: a built-in and a custom one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Map,
    Widget,
}

/// One object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub kind: Kind,
    pub namespace: &'static str,
    pub name: &'static str,
}

/// What a client wants an object to be.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    pub label: Option<&'static str>,
    pub value: u8,
    pub finalizers: &'static [&'static str],
}

/// What a client knows of the state it changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    Nothing,
    Current,
    Stale,
}

/// On which condition an object is deleted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    None,
    Uid(bool),
    Version(bool),
}

/// Where a watch begins.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    /// No resourceVersion, or 0: the state, then events.
    State { any: bool },
    /// `sendInitialEvents`
    Initial,
    /// So many revisions ago.
    Ago(u64),
}

#[derive(Clone, Debug)]
pub enum Step {
    Create(Place, Wish),
    Update(Place, Wish, Known),
    Merge(Place, Wish, Known),
    JsonPatch(Place, u8, bool),
    Delete(Place, Condition, bool),
    DeleteCollection(Kind, &'static str, &'static str),
    Get(Place),
    List(Kind, Option<&'static str>, &'static str),
    StartPages(Kind, Option<&'static str>, &'static str, usize),
    NextPage(usize),
    Watch(Kind, Option<&'static str>, &'static str, Begin),
    ReadWatch(usize),
    Compact(u64),
    CreateNamespace(&'static str),
    DeleteNamespace(&'static str),
    FinishNamespace(&'static str),
}

pub fn step() -> impl Strategy<Value = Step> {
    let kind = || prop_oneof![Just(Kind::Map), Just(Kind::Widget)];
    let namespace = || prop::sample::select(&NAMESPACES[..]);
    let scope = move || prop::option::of(namespace());
    let selector = || prop::sample::select(&SELECTORS[..]);
    let place = move || {
        let parts = (kind(), namespace(), prop::sample::select(&NAMES[..]));
        parts.prop_map(|(kind, namespace, name)| Place { kind, namespace, name })
    };
    let wish = || {
        let parts = (prop::sample::select(&LABELS[..]), 0..3u8, prop::sample::select(&FINALIZERS[..]));
        parts.prop_map(|(label, value, finalizers)| Wish { label, value, finalizers })
    };
    let known = || prop_oneof![2 => Just(Known::Nothing), 3 => Just(Known::Current), 1 => Just(Known::Stale)];
    let condition = prop_oneof![
        4 => Just(Condition::None),
        1 => any::<bool>().prop_map(Condition::Uid),
        1 => any::<bool>().prop_map(Condition::Version),
    ];
    let begin = prop_oneof![
        any::<bool>().prop_map(|any| Begin::State { any }),
        Just(Begin::Initial),
        (0..20u64).prop_map(Begin::Ago),
    ];
    prop_oneof![
        12 => (place(), wish()).prop_map(|(place, wish)| Step::Create(place, wish)),
        8 => (place(), wish(), known()).prop_map(|(place, wish, known)| Step::Update(place, wish, known)),
        8 => (place(), wish(), known()).prop_map(|(place, wish, known)| Step::Merge(place, wish, known)),
        3 => (place(), 0..3u8, any::<bool>()).prop_map(|(place, value, fits)| Step::JsonPatch(place, value, fits)),
        8 => (place(), condition, prop::bool::weighted(0.1)).prop_map(|(place, condition, dry)| Step::Delete(place, condition, dry)),
        1 => (kind(), namespace(), selector()).prop_map(|(kind, namespace, selector)| Step::DeleteCollection(kind, namespace, selector)),
        2 => place().prop_map(Step::Get),
        3 => (kind(), scope(), selector()).prop_map(|(kind, scope, selector)| Step::List(kind, scope, selector)),
        2 => (kind(), scope(), selector(), 1..3usize).prop_map(|(kind, scope, selector, limit)| Step::StartPages(kind, scope, selector, limit)),
        2 => (0..3usize).prop_map(Step::NextPage),
        4 => (kind(), scope(), selector(), begin).prop_map(|(kind, scope, selector, begin)| Step::Watch(kind, scope, selector, begin)),
        3 => (0..5usize).prop_map(Step::ReadWatch),
        1 => (0..20u64).prop_map(Step::Compact),
        1 => namespace().prop_map(Step::CreateNamespace),
        1 => namespace().prop_map(Step::DeleteNamespace),
        1 => namespace().prop_map(Step::FinishNamespace),
    ]
}
