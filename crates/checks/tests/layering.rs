//! `.ci/layering` reports each violation it checks for: run on a copy of the workspace with one violation each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A copy of what the script reads, in a directory of its own.
struct Workspace(tempfile::TempDir);

impl Workspace {
    /// None where there is no Python, which the script needs.
    fn copy() -> Option<Self> {
        if Command::new("python3").arg("--version").output().is_err() {
            checks::client_is_missing("there is no python3 for .ci/layering");
            return None;
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let copy = tempfile::tempdir().expect("there is room");
        for part in ["Cargo.toml", "Cargo.lock", ".ci", "crates"] {
            let copied = Command::new("cp").arg("-r").arg(root.join(part)).arg(copy.path()).status();
            assert!(copied.expect("cp runs").success(), "{part} is copied");
        }
        Some(Self(copy))
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn prepend(&self, file: &str, text: &str) {
        let path = self.path(file);
        let before = fs::read_to_string(&path).expect("the file is there");
        fs::write(path, text.to_owned() + &before).expect("the file can be written");
    }

    fn check(&self) -> (bool, String) {
        let Output { status, stderr, .. } = Command::new(self.path(".ci/layering"))
            .env("CARGO_NET_OFFLINE", "true")
            .output()
            .expect("the script runs");
        (status.success(), String::from_utf8_lossy(&stderr).into_owned())
    }
}

#[test]
fn the_tree_is_layered() {
    let Some(workspace) = Workspace::copy() else { return };
    let (ok, said) = workspace.check();
    assert!(ok, "{said}");
}

#[test]
fn a_wrong_edge_between_crates_is_refused() {
    let Some(workspace) = Workspace::copy() else { return };
    let manifest = workspace.path("crates/decide/Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("it is there");
    let wrong = text.replacen("[dependencies]\n", "[dependencies]\nstore.workspace = true\n", 1);
    fs::write(&manifest, wrong).expect("it can be written");
    let (ok, said) = workspace.check();
    assert!(!ok && said.contains("decide must not use store"), "{said}");
}

#[test]
fn a_circle_of_modules_is_refused() {
    let Some(workspace) = Workspace::copy() else { return };
    workspace.prepend("crates/apimachinery/src/quantity.rs", "use crate::selector as _;\n");
    workspace.prepend("crates/apimachinery/src/selector.rs", "use crate::quantity as _;\n");
    let (ok, said) = workspace.check();
    let circle = "modules of apimachinery use each other in a circle: quantity, selector";
    assert!(!ok && said.contains(circle), "{said}");
}

#[test]
fn a_circle_behind_a_name_of_the_root_is_refused() {
    let Some(workspace) = Workspace::copy() else { return };
    // `value` uses `types`, and the root re-exports `Value`.
    workspace.prepend("crates/cel/src/types.rs", "use crate::Value as _;\n");
    // At the top, `super` is the root.
    workspace.prepend("crates/apimachinery/src/quantity.rs", "use super::selector as _;\n");
    workspace.prepend("crates/apimachinery/src/selector.rs", "use super::{quantity as _};\n");
    let (ok, said) = workspace.check();
    for circle in [
        "modules of cel use each other in a circle: types, value",
        "modules of apimachinery use each other in a circle: quantity, selector",
    ] {
        assert!(!ok && said.contains(circle), "{said}");
    }
}
