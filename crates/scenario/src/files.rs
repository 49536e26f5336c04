//! Manifests in files of their own: `apply: ../policies/` stands for everything in that directory.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::yaml::yaml_problem;

/// The largest file that is read.
const BYTES_MAX: u64 = 16 << 20;

/// What a step applies, with the manifests of a file or a directory in the place of its path.
pub fn read(apply: Value, directory: &Path) -> Result<Value, String> {
    let Some(path) = apply.as_str().filter(|text| is_path(text)) else { return Ok(apply) };
    let whole = directory.join(path);
    let mut manifests = Vec::new();
    for file in found(&whole)? {
        manifests.extend(documents(&file)?);
    }
    match manifests.is_empty() {
        true => Err(format!("apply {path}: it contains no manifest")),
        false => Ok(Value::Array(manifests)),
    }
}

/// A block of YAML has several lines, and a manifest in one line has a colon and a space.
fn is_path(text: &str) -> bool {
    !text.contains('\n') && !text.contains(": ") && !text.trim_start().starts_with('{') && !text.is_empty()
}

fn found(path: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("apply {}: {}", path.display(), plain(&error));
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries: Result<Vec<_>, _> = std::fs::read_dir(path).map_err(failed)?.collect();
    let is_manifest = |path: &PathBuf| {
        path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|one| extension == *one))
    };
    let paths = entries.map_err(failed)?.into_iter().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths.filter(is_manifest).collect();
    files.sort();
    Ok(files)
}

fn documents(file: &Path) -> Result<Vec<Value>, String> {
    let failed = |why: String| format!("apply {}: {why}", file.display());
    let size = std::fs::metadata(file).map_err(|error| failed(plain(&error)))?.len();
    if size > BYTES_MAX {
        return Err(failed(format!("it has {size} bytes, and at most {BYTES_MAX} are read")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| failed(plain(&error)))?;
    let parsed = serde_saphyr::from_multiple::<Value>(&text).map_err(|error| failed(yaml_problem(&error)))?;
    let mut manifests = Vec::new();
    for document in parsed {
        let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        match document.get("items").and_then(Value::as_array).filter(|_| is_list) {
            Some(items) => manifests.extend(items.iter().cloned()),
            None if document.is_null() => {}
            None => manifests.push(document),
        }
    }
    Ok(manifests)
}

fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file or directory".to_owned(),
        _ => error.to_string(),
    }
}
