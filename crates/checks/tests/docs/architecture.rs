//! ARCHITECTURE.md is short, and every file that it names exists.

use std::sync::LazyLock;

use regex::Regex;

use crate::repository::root;

const LINES_MAX: usize = 199;

static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new("`([^`\n]+)`").expect("the pattern is one"));

fn text() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page is there")
}

/// The files that a page names and that do not exist. A file is named from the root, from its crate
/// (`apiserver/extension.rs`), or from a folder that its section names.
fn missing(text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut missing = Vec::new();
    for section in text.split("\n## ") {
        let code = || CODE.captures_iter(section).map(|code| code[1].to_owned());
        let folders: Vec<String> = code().filter(|name| name.starts_with("crates/")).collect();
        for file in code().filter(|name| name.ends_with(".rs") && !name.contains(' ')) {
            let of_crate = file.split_once('/').map(|(name, rest)| format!("crates/{name}/src/{rest}"));
            let in_folders = folders
                .iter()
                .flat_map(|folder| [format!("{folder}/{file}"), format!("{folder}/src/{file}")]);
            let found =
                of_crate.into_iter().chain(in_folders).chain([file.clone()]).any(|path| exists(&path));
            if !found {
                missing.push(file);
            }
        }
    }
    missing
}

#[test]
fn every_file_that_the_architecture_names_exists() {
    let text = text();
    let named = CODE.captures_iter(&text).filter(|code| code[1].ends_with(".rs")).count();
    assert!(named > 30, "only {named} files are named: is this the page?");
    assert_eq!(missing(&text, |path| root().join(path).is_file()), Vec::<String>::new());
}

#[test]
fn the_architecture_fits_two_hundred_lines() {
    let lines = text().lines().count();
    assert!(lines <= LINES_MAX, "{lines} lines");
}

#[test]
fn a_file_that_does_not_exist_is_found() {
    let exists = |path: &str| ["crates/a/src/b.rs", "crates/a/src/c/d.rs"].contains(&path);
    let check = |text: &str, expected: &[&str]| assert_eq!(missing(text, exists), expected, "{text}");
    check("`a/b.rs`, `crates/a/src/b.rs`, `word`", &[]);
    check("Files of `crates/a`: `b.rs`, `c/d.rs`", &[]);
    check("Files of `crates/a/src/c`: `d.rs`", &[]);
    check("Files of `crates/a`: `d.rs`", &["d.rs"]);
    check("`crates/a`\n## Next\n`b.rs`", &["b.rs"]);
    check("`crates/a/src/x.rs`", &["crates/a/src/x.rs"]);
}
