//! Where is a rule cited? The syntax is described in docs/behaviour/README.md. Knows nothing of which rules there are.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::repository::Page;

/// The ids that a file cites.
pub fn cited(page: &Page) -> BTreeSet<String> {
    match page.path.rsplit_once('.') {
        Some((_, "rs")) => in_rust(&page.text),
        Some((_, "md")) => in_markdown(&page.text),
        _ if is_scenario(&page.path) => in_scenario(&page.text),
        _ => BTreeSet::new(),
    }
}

/// Whether a file is a scenario; those of `longshore demo` are as well.
pub fn is_scenario(path: &str) -> bool {
    path.ends_with(".yaml") && (path.starts_with("scenarios/") || path.starts_with("crates/cli/stories/"))
}

/// The entries of a list in the head of a scenario: its `rules` or its `source`.
pub fn listed(scenario: &str, field: &str) -> Vec<String> {
    let scenario: Value = serde_saphyr::from_str(scenario).expect("a scenario is YAML");
    let entries = scenario[field].as_array().into_iter().flatten();
    entries.map(|entry| entry.as_str().expect("entries are text").to_owned()).collect()
}

/// Comments, strings with and without escapes, and characters of Rust: what comes first ends first.
pub static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    let comments = r"//[^\n]*|/\*.*?\*/";
    let strings = r###"r##".*?"##|r#".*?"#|r"[^"]*"|"(?:\\.|[^"\\])*""###;
    let characters = r"'(?:\\[^\n]{1,10}?|[^'\\\n])'";
    expression(&format!("(?s){comments}|{strings}|{characters}"))
});
static TEST: LazyLock<Regex> = LazyLock::new(|| {
    let attribute = r"#\[(?:tokio::)?test(?:\([^)]*\))?\]\s*(?:#\[[^\n]*\n\s*)*";
    expression(&format!("{attribute}(?:async )?fn ([a-z][1-9][0-9]?)_"))
});
static ID: LazyLock<Regex> = LazyLock::new(|| expression("[A-Z][1-9][0-9]?"));
static CODE: LazyLock<Regex> = LazyLock::new(|| expression("`[^`]*`"));
/// Ids in parentheses, alone or in a list, or in front of a colon.
static MARKED: LazyLock<Regex> = LazyLock::new(|| {
    let id = "[A-Z][1-9][0-9]?";
    expression(&format!(r"\(({id}(?:(?:,\s+|\s+and\s+|\s+to\s+){id})*)[:)]|^({id}):"))
});

fn expression(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is one")
}

fn in_rust(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for token in TOKEN.find_iter(source) {
        match token.as_str().chars().next() {
            Some('/') => found.extend(words(token.as_str())),
            Some('\'') | None => {}
            Some(_) => found.extend(strict(token.as_str().trim_matches(['r', '#', '"']))),
        }
    }
    found.extend(TEST.captures_iter(source).map(|captures| captures[1].to_uppercase()));
    found
}

fn in_markdown(text: &str) -> BTreeSet<String> {
    let (mut prose, mut blocks, mut is_block) = (String::new(), String::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else {
            let kept = if is_block { &mut blocks } else { &mut prose };
            kept.push_str(line);
            kept.push('\n');
        }
    }
    let mut found = words(&prose);
    found.extend(strict(&blocks));
    found
}

fn in_scenario(text: &str) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = listed(text, "rules").into_iter().collect();
    for source in listed(text, "source").iter().filter(|source| source.starts_with("decisions")) {
        found.extend(words(source));
    }
    for comment in text.lines().filter_map(|line| line.trim_start().strip_prefix('#')) {
        found.extend(words(comment));
    }
    found
}

/// Ids as words of prose, outside of backticks.
fn words(text: &str) -> BTreeSet<String> {
    let prose = CODE.replace_all(text, "` `");
    ID.find_iter(&prose)
        .filter(|id| stands_alone(&prose, id.range()))
        .map(|id| id.as_str().to_owned())
        .collect()
}

/// Whether this part of a text is a word, and not a part of a name, a path, a number or an address.
fn stands_alone(text: &str, range: std::ops::Range<usize>) -> bool {
    let joins = |sign: char| sign.is_alphanumeric() || "_-/\\+#`".contains(sign);
    let before = text[..range.start].chars().next_back();
    let mut after = text[range.end..].chars();
    let (next, second) = (after.next(), after.next());
    let is_dotted = next == Some('.') && second.is_some_and(char::is_alphanumeric);
    !before.is_some_and(|sign| joins(sign) || sign == '.') && !next.is_some_and(joins) && !is_dotted
}

/// Ids in text that people see or compare: in parentheses, or in front of a colon.
fn strict(text: &str) -> BTreeSet<String> {
    MARKED.captures_iter(text).flat_map(|captures| words(&captures[0])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expected: &[&str]) {
        let page = Page { path: path.to_owned(), text: text.to_owned() };
        assert_eq!(cited(&page).into_iter().collect::<Vec<_>>(), expected, "{path}: {text}");
    }

    #[test]
    fn prose_cites_by_the_word() {
        for (text, expected) in [
            ("// Nothing waits (R1, L2).", &["L2", "R1"][..]),
            ("/// S1 to S4: without a binding.", &["S1", "S4"]),
            ("/* M3's identity */", &["M3"]),
            (
                "// An `IpAddr::V4` and `V1` are code, 002-N2 is a case, and U2F, x/C3, C3.4 and C3-a are names.",
                &[],
            ),
            ("// 0xC3, C03 and c3 are numbers.", &[]),
            ("let V4 = E5 - B2;", &[]),
        ] {
            check("a.rs", text, expected);
        }
        check("a.md", "| P1 | on |\n\n`P2` and\n`one\nP3` are code.", &["P1"]);
    }

    #[test]
    fn strings_cite_in_parentheses_or_in_front() {
        for (text, expected) in [
            (r#"f("it waits (L1); so does this (S2, S4)")"#, &["L1", "S2", "S4"][..]),
            (r#"assert!(is, "U6: nobody else would lift it")"#, &["U6"]),
            (r#"f("V2", "team M5", "x C3 A9", "E1 of two", '"', "(B2)")"#, &["B2"]),
            ("f(r#\"a \"quote\" (C5)\"#, b\"\\\" (C6)\")", &["C5", "C6"]),
        ] {
            check("a.rs", text, expected);
        }
        check("a.md", "```text\nwaits (L1); M5 is a machine\n```\n", &["L1"]);
    }

    #[test]
    fn names_of_tests_cite() {
        check("a.rs", "#[test]\nfn r1_it_holds() {}\nfn v2_schema() {}\n", &["R1"]);
        check("a.rs", "#[tokio::test(start_paused = true)]\nasync fn u3_it_holds() {}\n", &["U3"]);
        check("a.rs", "#[tokio::test]\n#[cfg(unix)]\nasync fn u12_it_holds() {}\n", &["U12"]);
    }

    #[test]
    fn scenarios_cite_in_their_head_and_in_comments() {
        let text = "scenario: M1\nsource: ['decisions.md: R2 and C7', 'behaviour.md: 3.2 S9']\nrules: [R1]\nsteps:\n\
                    # As S1 says.\n- template: P5\n";
        check("scenarios/a/b.yaml", text, &["C7", "R1", "R2", "S1"]);
        check("deploy/b.yaml", text, &[]);
    }
}
