//! The walkthroughs through the code name files and functions that exist. A file is code such as
//! `crates/store/src/store.rs`, a function is code such as `fn write` behind the file that it is in.

use std::sync::LazyLock;

use regex::Regex;

use crate::repository::{pages, root};

/// The walkthroughs that lead through the code; the others lead through commands.
const WALKTHROUGHS: [&str; 2] = ["docs/walkthroughs/request.md", "docs/walkthroughs/deployment.md"];

static CODE: LazyLock<Regex> = LazyLock::new(|| expression("`([^`\n]+)`"));

fn expression(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is one")
}

/// Whether a source defines a function.
fn defines(source: &str, function: &str) -> bool {
    expression(&format!(r"\bfn {}\b", regex::escape(function))).is_match(source)
}

/// What a walkthrough names and the sources do not have. `source` reads a file of the repository.
fn complaints(text: &str, source: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut current: Option<(String, String)> = None;
    for code in CODE.captures_iter(text).map(|code| code[1].to_owned()) {
        if code.ends_with(".rs") {
            match source(&code) {
                Some(text) => current = Some((code, text)),
                None => complaints.push(format!("there is no file {code}")),
            }
        } else if let Some(function) = code.strip_prefix("fn ") {
            match &current {
                Some((_, text)) if defines(text, function) => {}
                Some((file, _)) => complaints.push(format!("{file} has no function {function}")),
                None => complaints.push(format!("no file is named before the function {function}")),
            }
        }
    }
    complaints
}

#[test]
fn walkthroughs_name_files_and_functions_that_exist() {
    let pages = pages();
    let mut all = Vec::new();
    for page in pages.iter().filter(|page| WALKTHROUGHS.contains(&page.path.as_str())) {
        let named = CODE.captures_iter(&page.text).filter(|code| code[1].starts_with("fn ")).count();
        assert!(named >= 10, "{} names only {named} functions: is its notation `fn name`?", page.path);
        let read = |file: &str| {
            let is_source = file.starts_with("crates/");
            is_source.then(|| std::fs::read_to_string(root().join(file)).ok()).flatten()
        };
        all.extend(complaints(&page.text, read).into_iter().map(|what| format!("{}: {what}", page.path)));
    }
    assert!(all.is_empty(), "\n{}", all.join("\n"));
}

#[test]
fn the_walkthroughs_through_the_code_exist() {
    let pages = pages();
    for path in WALKTHROUGHS {
        assert!(pages.iter().any(|page| page.path == path), "{path} is missing");
    }
}

#[test]
fn wrong_names_of_files_and_functions_are_found() {
    let source = |file: &str| (file == "crates/a/src/a.rs").then(|| "pub async fn open(x: u8) {}".to_owned());
    let check = |text: &str, expected: &[&str]| assert_eq!(complaints(text, source), expected, "{text}");
    check("`crates/a/src/a.rs` `fn open` and `Type` and `kubectl apply`", &[]);
    check("`crates/a/src/b.rs`", &["there is no file crates/a/src/b.rs"]);
    check("`a.rs`", &["there is no file a.rs"]);
    check("`crates/a/src/a.rs` `fn ope`", &["crates/a/src/a.rs has no function ope"]);
    check("`crates/a/src/a.rs` `fn open`, `fn close`", &["crates/a/src/a.rs has no function close"]);
    check("`fn open` in `crates/a/src/a.rs`", &["no file is named before the function open"]);
}
