//! Scenario files: where they are found and what they say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::step::{Cluster, Step, Written};
use crate::yaml::yaml_problem;

/// A scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Where it was read.
    pub path: PathBuf,
    /// What it shows, in one sentence.
    pub title: String,
    /// What it was made from: a document and a place in it.
    pub source: Vec<String>,
    /// The rules that it shows.
    pub rules: Vec<String>,
    /// Feature gates that differ from their default.
    pub gates: BTreeMap<String, bool>,
    /// Namespaces that are made before the first step.
    pub(crate) namespaces: Vec<String>,
    /// The clusters that are there from the start.
    pub clusters: Vec<Cluster>,
    /// What happens.
    pub(crate) steps: Vec<Step>,
}

/// Why a scenario cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file or directory cannot be read.
    #[error("read {path}: {source}")]
    Io {
        /// The path.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// It is not what a scenario looks like.
    #[error("{path}: {problem}")]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A directory has no scenario in it.
    #[error("{path}: this directory contains no .yaml file")]
    Empty {
        /// The path.
        path: PathBuf,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    scenario: String,
    #[serde(default)]
    source: Vec<String>,
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    gates: BTreeMap<String, bool>,
    #[serde(default)]
    namespaces: Vec<String>,
    clusters: Option<Vec<Cluster>>,
    steps: Vec<Spanned<Written>>,
}

/// The clusters of a scenario that names none.
const USUAL_CLUSTERS: [&str; 3] = ["member1", "member2", "member3"];

impl Scenario {
    /// Whether clusters join, leave or are cut off in it, so that others are there when it ends.
    pub fn changes_clusters(&self) -> bool {
        self.steps.iter().any(Step::is_about_clusters)
    }

    /// The line of the file in which a step begins, counted from 1 as steps are.
    pub fn line_of(&self, step: usize) -> Option<u64> {
        Some(self.steps.get(step.checked_sub(1)?)?.line)
    }
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| FileError::Io { path: path.to_owned(), source })?;
        Self::parse(path, &text)
    }

    /// Reads the text of a file.
    pub fn parse(path: &Path, text: &str) -> Result<Self, FileError> {
        let unreadable = |problem| FileError::Unreadable { path: path.to_owned(), problem };
        let file: File = serde_saphyr::from_str(text).map_err(|error| unreadable(problem(text, &error)))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let mut steps = Vec::new();
        for (index, Spanned { value: written, referenced, .. }) in file.steps.into_iter().enumerate() {
            let line = referenced.line();
            let step = written
                .read(directory, line)
                .map_err(|problem| unreadable(format!("line {line}: step {}: {problem}", index + 1)))?;
            steps.push(step);
        }
        let usual = || USUAL_CLUSTERS.into_iter().map(Cluster::named).collect();
        Ok(Self {
            path: path.to_owned(),
            title: file.scenario,
            source: file.source,
            rules: file.rules,
            gates: file.gates,
            namespaces: file.namespaces,
            clusters: file.clusters.unwrap_or_else(usual),
            steps,
        })
    }
}

/// What is wrong with a text, without advice for programmers.
fn problem(text: &str, error: &serde_saphyr::Error) -> String {
    match serde_saphyr::from_multiple::<serde_json::Value>(text).map_or(1, |documents| documents.len()) {
        0 | 1 => yaml_problem(error),
        count => format!("it has {count} documents; write one scenario into each file"),
    }
}

/// The scenario files that these paths name, directories with everything in them, sorted.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, FileError> {
    let mut found = Vec::new();
    for path in paths {
        let before = found.len();
        collect(path, &mut found)?;
        if found.len() == before {
            return Err(FileError::Empty { path: path.clone() });
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn collect(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), FileError> {
    let failed = |source| FileError::Io { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if path.is_dir() || is_yaml {
            collect(&path, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::expectation::Expected;

    /// The fields that a type has, as it says itself when it meets another one.
    fn fields<T: DeserializeOwned>() -> BTreeSet<String> {
        let error =
            serde_json::from_value::<T>(json!({ "no-such-field": 0 })).err().expect("it has no such field");
        let error = error.to_string();
        let (_, listed) = error.split_once("expected one of ").expect("it lists its fields");
        listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_schema_has_the_fields_that_are_read() {
        let schema: Value = serde_json::from_str(crate::SCHEMA).expect("the schema is JSON");
        let check = |pointer: &str, expected: BTreeSet<String>| {
            let properties =
                schema.pointer(pointer).and_then(Value::as_object).expect("an object of the schema");
            let found: BTreeSet<String> = properties.keys().cloned().collect();
            assert_eq!(found, expected, "{pointer}");
        };
        check("/$defs/step/properties", fields::<Written>());
        check("/$defs/expected/properties", fields::<Expected>());
        check("/$defs/policy/properties", fields::<crate::short::Policy>());
        let top = ["scenario", "source", "rules", "gates", "namespaces", "clusters", "steps"];
        check("/properties", top.map(str::to_owned).into());
    }
}
