//! The reference of labels, annotations, finalizers and taints: every constant of the code that is one, with its comment.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::repository::{Page, expect_page, pages, without_tests};

const PAGE: &str = "docs/reference/annotations-and-labels.md";

const HEAD: &str = "\
# Annotations, labels, finalizers and taints

Every key that Longshore reads or writes. Those with `karmada.io` are Karmada's. Keys with `longshore.io/`, and others
that contain `.karmada.io`, are no user's change of a template; the rule is in [activation](../behaviour/activation.md).

Generated from the code: `UPDATE_EXPECT=1 cargo test -p checks --test docs`
";

/// Comments, if there are any, and a constant that is a key.
static CONSTANT: LazyLock<Regex> = LazyLock::new(|| {
    let comment = r"((?:[ \t]*///[^\n]*\n)*)";
    let constant = r"[ \t]*(?:pub(?:\([a-z]+\))? )?const ([A-Z_]+): &str =\s*";
    expression(&format!("{comment}{constant}\"({KEY})\";"))
});
/// A key; the version of a group has a digit.
const KEY: &str = r"(?:[a-z.-]+\.)?(?:karmada|longshore)\.io/[a-z-]+";

/// What a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Annotation,
    Label,
    Finalizer,
    Taint,
    SecretType,
}

impl What {
    fn title(self) -> &'static str {
        match self {
            What::Annotation => "Annotations",
            What::Label => "Labels",
            What::Finalizer => "Finalizers",
            What::Taint => "Taints of clusters",
            What::SecretType => "Types of Secrets",
        }
    }
}

/// Files that hold keys of one sort.
const FILES: [(&str, What); 4] = [
    ("crates/api/src/annotations.rs", What::Annotation),
    ("crates/api/src/records.rs", What::Annotation),
    ("crates/api/src/labels.rs", What::Label),
    ("crates/api/src/finalizers.rs", What::Finalizer),
];

/// What the keys are that stand elsewhere, and what is to be known besides their comment.
const ELSEWHERE: &[(&str, What, &str)] = &[
    ("audit.longshore.io/dropped-refusals", What::Annotation, "On events of the audit log."),
    ("longshore.io/held-start", What::Annotation, ""),
    ("longshore.io/joined-by", What::Annotation, ""),
    ("longshore.io/names", What::Annotation, "On the Secret of the webhooks' certificates."),
    ("longshore.io/renew-after", What::Annotation, "On the Secret of the webhooks' certificates."),
    ("longshore.io/renew-authority-after", What::Annotation, "On the Secret of the webhooks' certificates."),
    ("longshore.io/role-kinds", What::Annotation, ""),
    ("longshore.io/role-namespaces", What::Annotation, ""),
    ("longshore.io/token-account", What::Annotation, "On the Secret of a member."),
    ("longshore.io/token-bound-to", What::Annotation, "On the Secret of a member."),
    ("longshore.io/token-expires", What::Annotation, "On the Secret of a member."),
    ("longshore.io/token-issued", What::Annotation, ""),
    ("longshore.io/token-used", What::Annotation, "On the Secret of a member."),
    ("longshore.io/unhealthy-since", What::Annotation, ""),
    ("longshore.io/role-of", What::Label, ""),
    ("longshore.io/token-of", What::Label, ""),
    ("longshore.io/bound-token", What::SecretType, ""),
    (
        "cluster.karmada.io/not-ready",
        What::Taint,
        "Set and removed by the health of the cluster: it is not ready.",
    ),
    (
        "cluster.karmada.io/unreachable",
        What::Taint,
        "Set and removed by the health of the cluster: it is not known.",
    ),
    ("cluster.karmada.io/unschedulable", What::Taint, ""),
];

/// Names of tables in the store, which have the shape of keys.
const TABLES: [&str; 1] = ["work.karmada.io/works"];

fn expression(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is one")
}

fn is_shipped(path: &str) -> bool {
    let for_tests = ["checks", "invariants", "scenario"];
    path.ends_with(".rs")
        && path.starts_with("crates/")
        && path.contains("/src/")
        && !path.contains("/tests")
        && !for_tests.iter().any(|name| path.starts_with(&format!("crates/{name}/")))
}

/// The text of a comment, with the values of constants instead of their names.
fn plain(comment: &str, source: &str) -> String {
    let lines = comment.lines().map(|line| line.trim().trim_start_matches("///").trim());
    let text = lines.collect::<Vec<_>>().join(" ");
    let link = expression(r"\[`([^`]+)`\]");
    let shown = |captures: &Captures<'_>| {
        let name = captures[1].rsplit("::").next().unwrap_or_default().to_owned();
        let value = expression(&format!("const {name}: &str = \"([^\"]+)\"")).captures(source);
        format!("`{}`", value.map_or(name, |value| value[1].to_owned()))
    };
    link.replace_all(&text, shown).into_owned()
}

/// Every key with its description, and complaints about keys that are in no category.
fn keys(pages: &[Page]) -> (BTreeMap<(What, String), String>, Vec<String>) {
    let (mut found, mut complaints) = (BTreeMap::new(), Vec::new());
    for page in pages.iter().filter(|page| is_shipped(&page.path)) {
        let source = without_tests(&page.text);
        for captures in CONSTANT.captures_iter(source) {
            let key = captures[3].to_owned();
            let of_file = FILES.iter().find(|(path, _)| *path == page.path).map(|(_, what)| (*what, ""));
            let sorted =
                ELSEWHERE.iter().find(|(known, ..)| *known == key).map(|(_, what, more)| (*what, *more));
            let Some((what, more)) = of_file.or(sorted) else {
                complaints.push(format!("{}: say in ELSEWHERE what {key} is", page.path));
                continue;
            };
            let text = format!("{more} {}", plain(&captures[1], source)).trim().to_owned();
            found.insert((what, key), text);
        }
    }
    let is_stale = |key: &&str| !found.keys().any(|(_, known)| known == key);
    let stale = ELSEWHERE.iter().map(|(key, ..)| *key).filter(is_stale);
    complaints.extend(stale.map(|key| format!("ELSEWHERE names {key}, which is in no source")));
    (found, complaints)
}

/// Keys that are written out in a source although no constant has them.
fn without_constant(pages: &[Page], keys: &BTreeMap<(What, String), String>) -> Vec<String> {
    let literal = expression(&format!("\"({KEY})\""));
    let mut complaints = Vec::new();
    for page in pages.iter().filter(|page| is_shipped(&page.path)) {
        for captures in literal.captures_iter(without_tests(&page.text)) {
            let key = &captures[1];
            if !TABLES.contains(&key) && !keys.keys().any(|(_, known)| known == key) {
                complaints.push(format!("{}: {key} is no constant with a comment", page.path));
            }
        }
    }
    complaints
}

fn written(keys: &BTreeMap<(What, String), String>) -> String {
    let mut text = HEAD.to_owned();
    let mut last = None;
    for ((what, key), said) in keys {
        if last != Some(*what) {
            let _ = write!(text, "\n## {}\n\n| key | what |\n|---|---|\n", what.title());
            last = Some(*what);
        }
        // The name of a binding follows.
        let more = if key.ends_with('-') { "…" } else { "" };
        let _ = writeln!(text, "| `{key}{more}` | {} |", said.replace('|', "\\|"));
    }
    text
}

#[test]
fn every_key_is_in_the_reference() {
    let pages = pages();
    let (keys, mut complaints) = keys(&pages);
    complaints.extend(without_constant(&pages, &keys));
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    expect_page(PAGE, &written(&keys));
}

#[test]
fn a_key_that_is_new_is_found() {
    let page = |path: &str, text: &str| Page { path: path.to_owned(), text: text.to_owned() };
    let known = page(
        "crates/api/src/labels.rs",
        "/// Says\n/// [`YES`].\npub const A: &str = \"karmada.io/a\";\nconst YES: &str = \"yes\";\n",
    );
    let (found, _) = keys(&[known]);
    assert_eq!(found.get(&(What::Label, "karmada.io/a".to_owned())).map(String::as_str), Some("Says `yes`."));
    let unsorted = page("crates/plane/src/new.rs", "const B: &str = \"longshore.io/b\";\n");
    let (_, complaints) = keys(&[unsorted]);
    assert_eq!(complaints[0], "crates/plane/src/new.rs: say in ELSEWHERE what longshore.io/b is");
    let literal = page("crates/plane/src/new.rs", "f(\"longshore.io/c\", \"longshore.io/v1\")");
    let expected = ["crates/plane/src/new.rs: longshore.io/c is no constant with a comment"];
    assert_eq!(without_constant(&[literal], &found), expected);
}
