//! Files and functions stay short enough to be read at once. Prints what it measures:
//! `cargo test -p checks --test docs house -- --nocapture`

use std::collections::BTreeSet;

use regex::Regex;

use crate::citations::TOKEN;
use crate::repository::{Page, folder, pages};

const FILE_MAX: usize = 500;
const FUNCTION_MAX: usize = 70;
const MEDIAN_MAX: usize = 9;

/// A function, and how many lines of code are between its braces: as clippy counts, without comments and blank lines.
struct Function {
    lines: usize,
    place: String,
}

/// The source with blanks instead of those tokens that are meant, so that every line stays where it is.
fn without(source: &str, is_meant: impl Fn(&str) -> bool) -> String {
    let blank = |token: &regex::Captures<'_>| match is_meant(&token[0]) {
        true => token[0].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect(),
        false => token[0].to_owned(),
    };
    TOKEN.replace_all(source, blank).into_owned()
}

/// Where the next of these signs stands that no parenthesis or bracket encloses.
fn outside(code: &str, signs: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            _ if depth == 0 && signs.contains(&byte) => return Some(at),
            _ => {}
        }
    }
    None
}

/// Where the brace that opens here is closed.
fn closed(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn functions(page: &Page) -> Vec<Function> {
    let head = Regex::new(r"\bfn\s+([a-zA-Z_0-9]+)").expect("the pattern is one");
    let (code, bare) = (without(&page.text, |token| token.starts_with('/')), without(&page.text, |_| true));
    let mut found = Vec::new();
    for captures in head.captures_iter(&bare) {
        let name = captures.get(1).expect("it has a name");
        let open = outside(&bare, b"{;", name.end()).filter(|open| bare.as_bytes()[*open] == b'{');
        let Some((open, end)) = open.and_then(|open| Some((open, closed(&bare, open)?))) else { continue };
        let lines = code[open + 1..end].lines().filter(|line| !line.trim().is_empty()).count();
        let line = bare[..name.start()].lines().count();
        found.push(Function { lines, place: format!("{}:{line} {}", page.path, name.as_str()) });
    }
    found
}

/// What is too long, and what was measured.
fn measured(pages: &[Page]) -> (Vec<String>, String) {
    let sources =
        || pages.iter().filter(|page| page.path.starts_with("crates/") && page.path.ends_with(".rs"));
    let files: BTreeSet<(usize, &str)> =
        sources().map(|page| (page.text.lines().count(), page.path.as_str())).collect();
    let mut functions: Vec<Function> =
        sources().filter(|page| page.path.contains("/src/")).flat_map(functions).collect();
    functions.sort_by_key(|function| function.lines);
    let (longest, last) = (files.last(), functions.last());
    let median = functions.get(functions.len() / 2).map_or(0, |function| function.lines);
    let said = format!(
        "{} files, the longest {longest:?}; {} functions, median {median} lines, the longest {:?}",
        files.len(),
        functions.len(),
        last.map(|function| (function.lines, function.place.as_str())),
    );
    let mut complaints: Vec<String> = files
        .iter()
        .filter(|(lines, _)| *lines > FILE_MAX)
        .map(|(lines, path)| format!("{path} has {lines} lines, more than {FILE_MAX}"))
        .collect();
    for Function { lines, place } in functions.iter().filter(|function| function.lines > FUNCTION_MAX) {
        complaints.push(format!("{place} has {lines} lines, more than {FUNCTION_MAX}"));
    }
    if median > MEDIAN_MAX {
        complaints.push(format!("the median function has {median} lines, more than {MEDIAN_MAX}"));
    }
    (complaints, said)
}

#[test]
fn files_and_functions_are_short() {
    let mut pages = pages();
    pages.extend(folder("crates/checks/tests/docs"));
    let (complaints, said) = measured(&pages);
    println!("{said}");
    assert!(complaints.is_empty(), "\n{}\n{said}", complaints.join("\n"));
}

#[test]
fn what_is_too_long_is_found() {
    let page = |path: &str, text: String| Page { path: path.to_owned(), text };
    let function = |lines: usize| {
        let body = "    call(\"}\", '}', [0; 3]); // }\n\n    // More.\n".repeat(lines);
        format!("trait A {{ fn a(&self); }}\n/// fn none() {{\nfn b<T>(c: [u8; 2]) -> T {{\n{body}}}\n")
    };
    let long = page("crates/a/src/a.rs", function(71));
    let (complaints, said) = measured(&[long, page("crates/a/tests/b.rs", "\n".repeat(501))]);
    let expected = [
        "crates/a/tests/b.rs has 501 lines, more than 500",
        "crates/a/src/a.rs:3 b has 71 lines, more than 70",
        "the median function has 71 lines, more than 9",
    ];
    assert_eq!(complaints, expected, "{said}");
    let (complaints, _) = measured(&[page("crates/a/src/a.rs", function(9))]);
    assert!(complaints.is_empty(), "{complaints:?}");
}
