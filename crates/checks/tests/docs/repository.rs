//! The text files of the repository, by path. Knows nothing of what is in them.

use std::path::{Path, PathBuf};

/// A text file.
pub struct Page {
    /// Relative to the root, with slashes.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// What is built, downloaded, or found by fuzzing, and this checker itself, whose tests cite what does not exist.
const LEFT_OUT: [&str; 3] = ["target", "fuzz/corpus", "crates/checks/tests/docs"];

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Rust source, scenario and document, sorted by path.
pub fn pages() -> Vec<Page> {
    let mut pages = Vec::new();
    gather("", &mut pages);
    pages.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(pages.len() > 1000, "only {} files were found: is this the repository?", pages.len());
    pages
}

/// The same of one folder, which may be one that is left out above.
pub fn folder(folder: &str) -> Vec<Page> {
    let mut pages = Vec::new();
    gather(folder, &mut pages);
    pages
}

fn gather(folder: &str, pages: &mut Vec<Page>) {
    let entries = std::fs::read_dir(root().join(folder)).expect("the folder can be listed");
    for entry in entries {
        let entry = entry.expect("the entry can be read");
        let name = entry.file_name().into_string().expect("names are text");
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if name.starts_with('.') || name == "target" || LEFT_OUT.contains(&path.as_str()) {
            continue;
        }
        if entry.file_type().expect("the type is known").is_dir() {
            gather(&path, pages);
        } else if [".rs", ".md", ".yaml"].iter().any(|ending| path.ends_with(ending)) {
            let text = std::fs::read_to_string(entry.path()).expect("the file is text");
            pages.push(Page { path, text });
        }
    }
}

/// Compares a page that is generated with what it should be, or writes it with `UPDATE_EXPECT=1`.
pub fn expect_page(path: &str, wanted: &str) {
    let file = root().join(path);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::create_dir_all(file.parent().expect("pages are in folders")).expect("the folder is made");
        std::fs::write(file, wanted).expect("the page is written");
        return;
    }
    let found = std::fs::read_to_string(file).unwrap_or_default();
    let hint = "UPDATE_EXPECT=1 cargo test -p checks --test docs";
    assert!(found == wanted, "{path} is out of date\nhint: {hint}");
}

/// A source without its unit tests, which come last.
pub fn without_tests(source: &str) -> &str {
    source.split("#[cfg(test)]").next().unwrap_or_default()
}
