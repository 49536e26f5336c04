//! Stage files: per kind, how an object that meets a condition changes, and after what delay. The first stage whose
//! conditions hold acts; its change must end its own conditions, or the stage is skipped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::key::{Kind, Named};

mod condition;
mod template;

use condition::Condition;
pub use template::Scene;

/// The files that come with the program.
const BUILT_IN: [(&str, &str); 4] = [
    ("ingress.yaml", include_str!("../stages/ingress.yaml")),
    ("node.yaml", include_str!("../stages/node.yaml")),
    ("pod.yaml", include_str!("../stages/pod.yaml")),
    ("service.yaml", include_str!("../stages/service.yaml")),
];

/// How many kinds stage files can speak of.
const KINDS_MAX: usize = 200;

/// Why stage files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The operating system refused something.
    #[error("read {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file does not say what a stage file says.
    #[error("read stages from {name}: {why}")]
    Format {
        /// The file.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// There are files for more kinds than a member looks after.
    #[error("stage files speak of more than {KINDS_MAX} kinds")]
    TooMany,
}

/// What becomes of objects, by kind.
#[derive(Debug, Clone)]
pub struct Stages {
    files: BTreeMap<(String, String), File>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    plural: String,
    stages: Vec<Stage>,
}

/// One step of an object.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stage {
    pub name: String,
    #[serde(default)]
    when: Vec<Condition>,
    #[serde(default)]
    after_milliseconds: u64,
    /// The fields of the status that change, as a merge patch with expressions.
    #[serde(default)]
    status: Option<Value>,
    /// The object goes.
    #[serde(default)]
    delete: bool,
}

/// What a stage does.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The object gets this status.
    Status(Value),
    /// The object goes.
    Delete,
}

/// A stage that applies to an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Next {
    /// Its place among the stages of the kind.
    pub stage: usize,
    pub after: Duration,
    pub step: Step,
}

impl Stages {
    /// The stages that come with the program.
    pub fn builtin() -> Stages {
        let stages = Stages { files: BTreeMap::new() };
        let with = |stages: Stages, (name, text): &(&str, &str)| stages.with_text(name, text);
        BUILT_IN.iter().try_fold(stages, with).expect("the files that come with the program are tested")
    }

    /// These stages, and those of a file; for a kind that both speak of, the file counts.
    pub fn with_text(mut self, name: &str, text: &str) -> Result<Stages, StageError> {
        let wrong = |why: String| StageError::Format { name: name.to_owned(), why };
        let file: File = serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
        for stage in &file.stages {
            if stage.delete == stage.status.is_some() {
                return Err(wrong(format!(
                    "stage {:?} must have either a status or delete: true",
                    stage.name
                )));
            }
            if let Some(status) = &stage.status {
                template::check(status).map_err(|why| wrong(format!("stage {:?}: {why}", stage.name)))?;
            }
        }
        self.files.insert((file.api_version.clone(), file.kind.clone()), file);
        match self.files.len() > KINDS_MAX {
            true => Err(StageError::TooMany),
            false => Ok(self),
        }
    }

    /// These stages, and those of every `.yaml` file in a directory.
    pub fn with_directory(mut self, directory: &Path) -> Result<Stages, StageError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| StageError::Io { path, source }
        };
        let entries = std::fs::read_dir(directory).map_err(failed(directory))?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(failed(directory))?.path());
        }
        paths.sort();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "yaml")) {
            let text = std::fs::read_to_string(path).map_err(failed(path))?;
            self = self.with_text(&path.display().to_string(), &text)?;
        }
        Ok(self)
    }

    /// The kinds that stage files speak of, with what the API calls them.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (Kind, Named)> {
        let of = |(place, file): (usize, &File)| {
            let staged = Kind::Staged(u8::try_from(place).unwrap_or(u8::MAX));
            let kind = Kind::of(&file.api_version, &file.kind).unwrap_or(staged);
            let (api_version, name) = (file.api_version.clone(), file.kind.clone());
            (kind, Named { api_version, kind: name, plural: file.plural.clone() })
        };
        self.files.values().enumerate().map(of)
    }

    /// The stage that applies to an object, if one does.
    pub(crate) fn next(&self, named: &Named, object: &Value, scene: &Scene<'_>) -> Option<Next> {
        let file = self.files.get(&(named.api_version.clone(), named.kind.clone()))?;
        let holds = |stage: &&(usize, &Stage)| stage.1.when.iter().all(|condition| condition.holds(object));
        let stages: Vec<(usize, &Stage)> = file.stages.iter().enumerate().collect();
        stages.iter().filter(holds).find_map(|(place, stage)| {
            let after = Duration::from_millis(stage.after_milliseconds);
            let step = stage.step(object, scene)?;
            Some(Next { stage: *place, after, step })
        })
    }
}

impl Stage {
    /// What the stage does to an object; `None` when it would act on its own outcome for ever.
    fn step(&self, object: &Value, scene: &Scene<'_>) -> Option<Step> {
        let Some(template) = &self.status else { return Some(Step::Delete) };
        let mut outcome = object.clone();
        template::merge(&mut outcome["status"], &template::render(template, object, scene));
        let ends = !self.when.iter().all(|condition| condition.holds(&outcome));
        ends.then(|| Step::Status(outcome["status"].take()))
    }
}

#[cfg(test)]
mod tests;
