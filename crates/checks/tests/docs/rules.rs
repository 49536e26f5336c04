//! Rules in docs/behaviour: what is cited is defined there, and a scenario shows each. Writes the scenarios under each
//! rule with `UPDATE_EXPECT=1`.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::citations::{cited, is_scenario, listed};
use crate::repository::{Page, expect_page, pages};

/// Rules that no scenario shows, and why.
const WITHOUT_SCENARIO: &[(&str, &str)] = &[];

const COLUMNS: usize = 120;

/// A rule and the scenarios that show it.
struct Rule {
    page: String,
    scenarios: BTreeSet<String>,
}

fn is_page_of_rules(path: &str) -> bool {
    path.strip_prefix("docs/behaviour/").is_some_and(|name| name.ends_with(".md") && !name.contains('/'))
}

/// The id that a line defines.
fn defined(line: &str) -> Option<&str> {
    let (id, title) = line.strip_prefix("### ")?.split_once(' ')?;
    let (letter, number) = (id.get(..1)?, id.get(1..)?);
    let is_id = letter.chars().all(|letter| letter.is_ascii_uppercase())
        && !number.starts_with('0')
        && number.parse::<u8>().is_ok_and(|number| number < 100);
    (is_id && !title.is_empty()).then_some(id)
}

/// The rules, and complaints about those that are defined twice.
fn rules(pages: &[Page]) -> (BTreeMap<String, Rule>, Vec<String>) {
    let (mut rules, mut complaints) = (BTreeMap::new(), Vec::new());
    for page in pages.iter().filter(|page| is_page_of_rules(&page.path)) {
        for id in page.text.lines().filter_map(defined) {
            let rule = Rule { page: page.path.clone(), scenarios: BTreeSet::new() };
            if let Some(other) = rules.insert(id.to_owned(), rule) {
                complaints.push(format!("{id} is defined in {} and in {}", other.page, page.path));
            }
        }
    }
    for page in pages.iter().filter(|page| page.path.starts_with("scenarios/")) {
        let name = page.path.trim_start_matches("scenarios/").trim_end_matches(".yaml");
        for id in listed(&page.text, "rules") {
            if let Some(rule) = rules.get_mut(&id) {
                rule.scenarios.insert(name.to_owned());
            }
        }
    }
    (rules, complaints)
}

/// What is wrong with the rules and those who cite them.
fn complaints(pages: &[Page], excused: &[(&str, &str)]) -> Vec<String> {
    let (rules, mut complaints) = rules(pages);
    for page in pages {
        for id in cited(page).iter().filter(|id| !rules.contains_key(*id)) {
            complaints.push(format!("{}: {id} is defined nowhere in docs/behaviour", page.path));
        }
        complaints.extend(misnamed(page));
    }
    for (id, rule) in &rules {
        let is_excused = excused.iter().any(|(excused, _)| excused == id);
        match (rule.scenarios.is_empty(), is_excused) {
            (true, false) => complaints.push(format!("{}: no scenario has {id} among its rules", rule.page)),
            (false, true) => {
                complaints.push(format!("{id} has a scenario now: take it off WITHOUT_SCENARIO"))
            }
            _ => {}
        }
    }
    for (id, _) in excused.iter().filter(|(id, _)| !rules.contains_key(*id)) {
        complaints.push(format!("WITHOUT_SCENARIO names {id}, which is defined nowhere"));
    }
    complaints
}

/// A scenario of a rule begins with its id, and shows it.
fn misnamed(page: &Page) -> Option<String> {
    let name = page.path.strip_prefix("scenarios/rules/").filter(|_| is_scenario(&page.path))?;
    let id = name.split('-').next().unwrap_or_default().to_uppercase();
    let is_shown = listed(&page.text, "rules").contains(&id);
    (!is_shown).then(|| format!("{}: it is named after {id}, which is not among its rules", page.path))
}

/// A page with the scenarios under each of its rules.
fn with_scenarios(page: &Page, rules: &BTreeMap<String, Rule>, excused: &[(&str, &str)]) -> String {
    let mut written = String::new();
    for section in sections(&page.text) {
        let Some(rule) = defined(section.lines().next().unwrap_or_default()) else {
            written.push_str(section);
            continue;
        };
        let text = section.split("\nScenarios: ").next().unwrap_or_default().trim_end();
        let reason = excused.iter().find(|(id, _)| *id == rule).map(|(_, reason)| *reason);
        let names = reason.map_or_else(
            || rules[rule].scenarios.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
            |reason| format!("none, because {reason}"),
        );
        written.push_str(&format!("{text}\n\n{}.\n\n", wrapped(&format!("Scenarios: {names}"))));
    }
    format!("{}\n", written.trim_end())
}

/// The parts of a page, each with the heading that it begins with.
fn sections(text: &str) -> Vec<&str> {
    let heading = Regex::new("(?m)^#+ ").expect("the pattern is one");
    let starts: Vec<usize> = heading.find_iter(text).map(|heading| heading.start()).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| &text[*start..end]).collect()
}

fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.len() + 1 + word.len() >= COLUMNS {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[test]
fn rules_that_are_cited_are_defined_and_shown() {
    let complaints = complaints(&pages(), WITHOUT_SCENARIO);
    assert!(complaints.is_empty(), "\n{}\nhint: docs/behaviour/README.md", complaints.join("\n"));
}

#[test]
fn scenarios_stand_under_the_rules_that_they_show() {
    let pages = pages();
    let (rules, _) = rules(&pages);
    for page in pages.iter().filter(|page| is_page_of_rules(&page.path)) {
        expect_page(&page.path, &with_scenarios(page, &rules, WITHOUT_SCENARIO));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Page {
        Page { path: path.to_owned(), text: text.to_owned() }
    }

    fn book(more: &[(&str, &str)]) -> Vec<Page> {
        let scenario = "scenario: x\nrules: [R1]\nsteps: []\n";
        let mut pages = vec![
            page("docs/behaviour/a.md", "# A\n\n### R1 It holds\n\nText.\n"),
            page("scenarios/rules/r1-holds.yaml", scenario),
        ];
        pages.extend(more.iter().map(|(path, text)| page(path, text)));
        pages
    }

    fn check(more: &[(&str, &str)], excused: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(complaints(&book(more), excused), expected);
    }

    #[test]
    fn a_book_without_faults_is_not_complained_about() {
        check(&[("a.rs", "// As ever (R1)."), ("README.md", "R1 holds.")], &[], &[]);
    }

    #[test]
    fn an_undefined_rule_is_found_wherever_it_is_cited() {
        for (path, text) in [
            ("crates/a/src/a.rs", "// As ever (R2)."),
            ("crates/a/src/a.rs", "#[test]\nfn r2_it_holds() {}"),
            ("crates/a/src/a.rs", "f(\"it waits (R2)\")"),
            ("docs/a.md", "R2 says so."),
            ("scenarios/a/b.yaml", "scenario: x\nrules: [R2]\nsteps: []\n"),
            ("crates/cli/stories/b.yaml", "scenario: x\nrules: [R2]\nsteps: []\n"),
            ("scenarios/a/b.yaml", "scenario: x\nsource: ['decisions.md: R2']\nsteps: []\n"),
        ] {
            let expected = format!("{path}: R2 is defined nowhere in docs/behaviour");
            check(&[(path, text)], &[], &[&expected]);
        }
    }

    #[test]
    fn a_rule_that_no_scenario_shows_is_found() {
        let rule = ("docs/behaviour/b.md", "### R2 It also holds\n");
        check(&[rule], &[], &["docs/behaviour/b.md: no scenario has R2 among its rules"]);
        let story = ("crates/cli/stories/b.yaml", "scenario: x\nrules: [R2]\nsteps: []\n");
        check(&[rule, story], &[], &["docs/behaviour/b.md: no scenario has R2 among its rules"]);
        check(&[rule], &[("R2", "it cannot be seen")], &[]);
    }

    #[test]
    fn an_excuse_that_is_not_needed_is_found() {
        check(&[], &[("R1", "why")], &["R1 has a scenario now: take it off WITHOUT_SCENARIO"]);
        check(&[], &[("R9", "why")], &["WITHOUT_SCENARIO names R9, which is defined nowhere"]);
    }

    #[test]
    fn two_definitions_and_a_wrong_name_are_found() {
        let again = ("docs/behaviour/b.md", "### R1 Again\n");
        check(&[again], &[], &["R1 is defined in docs/behaviour/a.md and in docs/behaviour/b.md"]);
        let path = "scenarios/rules/r3-b.yaml";
        let expected = format!("{path}: it is named after R3, which is not among its rules");
        check(&[(path, "scenario: x\nrules: [R1]\nsteps: []\n")], &[], &[&expected]);
    }

    #[test]
    fn scenarios_are_written_under_their_rule() {
        let pages = book(&[("scenarios/a/b.yaml", "scenario: x\nrules: [R1]\nsteps: []\n")]);
        let (rules, _) = rules(&pages);
        let once = with_scenarios(&pages[0], &rules, &[]);
        assert_eq!(once, "# A\n\n### R1 It holds\n\nText.\n\nScenarios: `a/b`, `rules/r1-holds`.\n");
        let again = page("docs/behaviour/a.md", &once);
        assert_eq!(with_scenarios(&again, &rules, &[]), once, "written twice, it is the same");
        let none = with_scenarios(&again, &rules, &[("R1", "it is late")]);
        assert_eq!(none, "# A\n\n### R1 It holds\n\nText.\n\nScenarios: none, because it is late.\n");
    }
}
