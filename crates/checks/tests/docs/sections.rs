//! Sections of Karmada's behaviour: those that scenarios cite exist.

use std::collections::BTreeSet;

use regex::Regex;

use crate::citations::{is_scenario, listed};
use crate::repository::{Page, pages};

const SOURCE: &str = "behaviour.md: ";

/// The numbers of the sections, such as 5.8.
fn sections(pages: &[Page]) -> BTreeSet<String> {
    let heading = Regex::new(r"(?m)^## ([0-9]+\.[0-9]+) ").expect("the pattern is one");
    let reference = pages.iter().filter(|page| page.path.starts_with("docs/behaviour/karmada/"));
    reference.flat_map(|page| heading.captures_iter(&page.text)).map(|found| found[1].to_owned()).collect()
}

fn complaints(pages: &[Page]) -> Vec<String> {
    let (sections, number) =
        (sections(pages), Regex::new(r"\b[0-9]+\.[0-9]+\b").expect("the pattern is one"));
    let mut complaints = Vec::new();
    for page in pages.iter().filter(|page| is_scenario(&page.path)) {
        for source in listed(&page.text, "source").iter().filter_map(|source| source.strip_prefix(SOURCE)) {
            let cited = number.find_iter(source).map(|number| number.as_str());
            for section in cited.filter(|section| !sections.contains(*section)) {
                complaints
                    .push(format!("{}: there is no section {section} in docs/behaviour/karmada", page.path));
            }
        }
    }
    complaints
}

#[test]
fn sections_that_scenarios_cite_exist() {
    let complaints = complaints(&pages());
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn a_section_that_does_not_exist_is_found() {
    let page = |path: &str, text: &str| Page { path: path.to_owned(), text: text.to_owned() };
    let reference = page("docs/behaviour/karmada/5.md", "# 5. Five\n\n## 5.8 Writing\n");
    let scenario = |source: &str| {
        page("scenarios/a.yaml", &format!("scenario: x\nsource: ['behaviour.md: {source}']\nsteps: []\n"))
    };
    assert_eq!(
        complaints(&[reference, scenario("5.8, 5.9 row 3")]),
        ["scenarios/a.yaml: there is no section 5.9 in docs/behaviour/karmada"]
    );
}
