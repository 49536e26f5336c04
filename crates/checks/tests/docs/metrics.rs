//! Metrics that the code names are in the reference, also those that are printed under some conditions only. That the
//! reference has what the binary prints, and its texts, is tested in `cli` (`--test commands metrics`).

use std::collections::BTreeSet;

use regex::Regex;

use crate::repository::{Page, pages, without_tests};

const PAGE: &str = "docs/reference/metrics.md";

/// The names of metrics in the sources of the server and of the controllers, and the file that names each.
fn named(pages: &[Page]) -> BTreeSet<(String, String)> {
    let expression = |pattern: &str| Regex::new(pattern).expect("the pattern is one");
    let prefixed = expression(r#""((?:apiserver|longshore|karmada)_[a-z0-9_]+)"#);
    let family = expression(r#"\bfamily\(\s*"([a-z0-9_]+)""#);
    let used = expression(r#"metrics\s*\.(?:add|count|observe|observe_since|set)[a-z_]*\(\s*"([a-z0-9_]+)""#);
    let mut names = BTreeSet::new();
    for page in pages.iter().filter(|page| is_read(&page.path)) {
        let source = without_tests(&page.text);
        for captures in [&prefixed, &family, &used].into_iter().flat_map(|one| one.captures_iter(source)) {
            names.insert((captures[1].to_owned(), page.path.clone()));
        }
    }
    names
}

fn is_read(path: &str) -> bool {
    let is_source =
        ["crates/apiserver/src/", "crates/controllers/src/"].iter().any(|one| path.starts_with(one));
    is_source && path.ends_with(".rs") && !path.contains("/tests")
}

fn complaints(pages: &[Page]) -> Vec<String> {
    let reference = pages.iter().find(|page| page.path == PAGE).map_or("", |page| page.text.as_str());
    let missing = named(pages).into_iter().filter(|(name, _)| !reference.contains(&format!("| `{name}` |")));
    missing.map(|(name, path)| format!("{path}: {name} is not in {PAGE}")).collect()
}

#[test]
fn every_metric_is_in_the_reference() {
    let pages = pages();
    assert!(named(&pages).len() > 50, "the metrics are named in another way now: {:?}", named(&pages));
    let complaints = complaints(&pages);
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn a_metric_that_is_new_is_found() {
    let page = |path: &str, text: &str| Page { path: path.to_owned(), text: text.to_owned() };
    let pages = [
        page(PAGE, "| `apiserver_a_total` | counter | Known. |\n"),
        page(
            "crates/apiserver/src/a.rs",
            "f(\"apiserver_a_total {count}\"); f(\"apiserver_b_total {count}\")",
        ),
        page(
            "crates/controllers/src/b.rs",
            "family(\n    \"c_total\", Shape::Counter); ctx.metrics.count(\"d_total\")",
        ),
    ];
    let expected = [
        "crates/apiserver/src/a.rs: apiserver_b_total is not in docs/reference/metrics.md",
        "crates/controllers/src/b.rs: c_total is not in docs/reference/metrics.md",
        "crates/controllers/src/b.rs: d_total is not in docs/reference/metrics.md",
    ];
    assert_eq!(complaints(&pages), expected);
}
