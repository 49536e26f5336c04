//! Links and paths in documents resolve.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use crate::repository::{Page, pages, root};

/// The target of a link, outside of code.
static LINK: LazyLock<Regex> = LazyLock::new(|| expression(r"\]\(([^)\s]+)\)"));
/// Code in backticks that is a path of this repository: it has no blanks, patterns or ellipses.
static CODED: LazyLock<Regex> = LazyLock::new(|| {
    expression(r"`((?:crates|docs|scenarios|deploy|fuzz|checks)/[A-Za-z0-9_./-]+|\.ci/[a-z]+)`")
});
static FENCE: LazyLock<Regex> = LazyLock::new(|| expression(r"(?ms)^ *```.*?^ *```"));

fn expression(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is one")
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|sign| sign.is_alphanumeric() || " -_".contains(*sign));
    kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    let prose = FENCE.replace_all(text, "");
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

/// A path without `..`, relative to the root.
fn resolved(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn complaints(pages: &[Page], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let documents = || pages.iter().filter(|page| page.path.ends_with(".md"));
    let known: BTreeMap<&str, BTreeSet<String>> =
        documents().map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    let mut complaints = Vec::new();
    for page in documents() {
        let prose = FENCE.replace_all(&page.text, "");
        for target in LINK.captures_iter(&prose).map(|link| link[1].to_owned()) {
            if target.contains("://") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let file = if file.is_empty() { page.path.clone() } else { resolved(&page.path, file) };
            let has_heading = heading.is_empty()
                || known.get(file.as_str()).is_some_and(|anchors| anchors.contains(heading));
            if !exists(&file) || !has_heading {
                complaints.push(format!("{}: the link to {target} leads nowhere", page.path));
            }
        }
        for path in CODED.captures_iter(&prose).map(|code| code[1].trim_end_matches('/').to_owned()) {
            if !exists(&path) {
                complaints.push(format!("{}: there is no {path}", page.path));
            }
        }
    }
    complaints
}

#[test]
fn links_and_paths_lead_somewhere() {
    let complaints = complaints(&pages(), |path| root().join(path).exists());
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let page = |path: &str, text: &str| Page { path: path.to_owned(), text: text.to_owned() };
    let pages = [
        page("README.md", "[a](docs/a.md#two-words) [b](docs/b.md) [c](docs/a.md#three) `crates/none.rs`"),
        page(
            "docs/a.md",
            "# Two, words\n\n[up](../README.md) [web](https://example.com) `crates/…` [here](#two-words)",
        ),
    ];
    let exists = |path: &str| ["README.md", "docs/a.md"].map(Path::new).contains(&Path::new(path));
    assert_eq!(
        complaints(&pages, exists),
        [
            "README.md: the link to docs/b.md leads nowhere",
            "README.md: the link to docs/a.md#three leads nowhere",
            "README.md: there is no crates/none.rs",
        ]
    );
}
