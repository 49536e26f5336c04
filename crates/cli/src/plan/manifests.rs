//! The objects that files describe, as `kubectl apply -f` finds them: files, directories, stdin, or a kustomization.
//! Knows no server.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow};
use serde_json::Value;

use crate::Hint;

/// The largest file that is read.
const BYTES_MAX: u64 = 64 << 20;

/// kubectl's flags that name manifests.
#[derive(clap::Args, Debug)]
pub struct Files {
    /// Manifest files, directories of them, or - for stdin
    #[arg(long, short, value_name = "FILE", num_args = 1.., group = "what")]
    filename: Vec<PathBuf>,
    /// Directory with a kustomization, which kubectl or kustomize builds
    #[arg(long, short, value_name = "DIR", group = "what")]
    kustomize: Option<PathBuf>,
    /// Read directories recursively
    #[arg(long, short = 'R', requires = "filename")]
    recursive: bool,
}

impl Files {
    /// Every object that they describe; none if no flag is given.
    pub fn manifests(&self) -> Result<Vec<Value>> {
        let mut manifests = match self.filename.as_slice() {
            [] => Vec::new(),
            files => read(files, self.recursive)?,
        };
        if let Some(directory) = &self.kustomize {
            manifests.extend(kustomized(directory)?);
        }
        Ok(manifests)
    }
}

/// Every object in these files, in their order; `-` is stdin.
fn read(files: &[PathBuf], recursive: bool) -> Result<Vec<Value>> {
    let mut manifests = Vec::new();
    for file in files {
        let mut found = Vec::new();
        collect(file, recursive, true, &mut found)?;
        for path in found {
            let text = text(&path)?;
            let parsed = parse(&text).with_context(|| format!("read {}", path.display()))?;
            manifests.extend(parsed);
        }
    }
    if manifests.is_empty() {
        let hint = Hint(
            "in directories, only .yaml, .yml and .json files are read; add -R to read subdirectories"
                .to_owned(),
        );
        return Err(anyhow::Error::new(hint).context("the files contain no objects"));
    }
    Ok(manifests)
}

/// Every object of a kustomization, as `kubectl apply -k` builds it: kubectl does it, or kustomize itself.
fn kustomized(directory: &Path) -> Result<Vec<Value>> {
    let doing = || format!("build the kustomization {}", directory.display());
    for (program, arguments) in [("kubectl", "kustomize"), ("kustomize", "build")] {
        let output = match Command::new(program).arg(arguments).arg(directory).stdin(Stdio::null()).output() {
            Ok(output) => output,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("{}: run {program}", doing())),
        };
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(anyhow!("{program} said: {}", said.trim()).context(doing()));
        }
        return parse(&String::from_utf8_lossy(&output.stdout)).with_context(doing);
    }
    let hint = Hint(
        "install kubectl or kustomize, or build the kustomization elsewhere and pass the result with -f"
            .to_owned(),
    );
    Err(anyhow::Error::new(hint).context("neither kubectl nor kustomize is on PATH").context(doing()))
}

fn collect(path: &Path, recursive: bool, named: bool, found: &mut Vec<PathBuf>) -> Result<()> {
    if path == Path::new("-") || !path.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    if !named && !recursive {
        return Ok(());
    }
    let failed = || format!("read {}", path.display());
    let entries: std::io::Result<Vec<_>> = std::fs::read_dir(path).with_context(failed)?.collect();
    let mut paths: Vec<PathBuf> = entries.with_context(failed)?.iter().map(std::fs::DirEntry::path).collect();
    paths.sort();
    let is_manifest = |path: &PathBuf| {
        path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|one| extension == *one))
    };
    for path in paths.into_iter().filter(|path| path.is_dir() || is_manifest(path)) {
        collect(&path, recursive, false, found)?;
    }
    Ok(())
}

fn text(path: &Path) -> Result<String> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().take(BYTES_MAX).read_to_string(&mut text).context("read stdin")?;
    } else {
        let failed = || format!("read {}", path.display());
        let file = std::fs::File::open(path).with_context(failed)?;
        file.take(BYTES_MAX).read_to_string(&mut text).with_context(failed)?;
    }
    Ok(text)
}

/// The objects of a text; lists are taken apart.
fn parse(text: &str) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for document in serde_saphyr::from_multiple::<Value>(text)
        .map_err(|error| anyhow!("{}", scenario::yaml_problem(&error)))?
    {
        let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        match document.get("items").and_then(Value::as_array).filter(|_| is_list) {
            Some(items) => objects.extend(items.iter().cloned()),
            None if document.is_null() => {}
            None => objects.push(document),
        }
    }
    for object in &objects {
        for field in ["/apiVersion", "/kind", "/metadata/name"] {
            if object.pointer(field).and_then(Value::as_str).is_none_or(str::is_empty) {
                let field = field.trim_start_matches('/').replace('/', ".");
                return Err(anyhow!("an object lacks {field}"));
            }
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_as_kubectl_finds_them() {
        let directory = tempfile::tempdir().expect("there is room for a temporary directory");
        let object = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: {name} }}\n");
        let write = |path: &str, text: &str| {
            std::fs::write(directory.path().join(path), text).expect("it can be written")
        };
        std::fs::create_dir(directory.path().join("deep")).expect("it can be made");
        write("b.yaml", &format!("{}---\n---\n{}", object("b1"), object("b2")));
        write(
            "a.json",
            r#"{ "apiVersion": "v1", "kind": "List", "items": [
            { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } } ] }"#,
        );
        write("deep/c.yml", &object("c"));
        write("note.txt", "not this");
        let names = |recursive: bool| -> Vec<String> {
            let found = read(&[directory.path().to_owned()], recursive).expect("readable");
            found.iter().map(|one| one["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
        };
        assert_eq!(names(false), ["a", "b1", "b2"]);
        assert_eq!(names(true), ["a", "b1", "b2", "c"]);
    }

    #[test]
    fn what_is_no_object_is_named() {
        let check = |text: &str, expected: &str| {
            let error = parse(text).expect_err("it makes no sense");
            assert!(error.to_string().contains(expected), "{error}");
        };
        check("kind: ConfigMap", "an object lacks apiVersion");
        check("apiVersion: v1\nkind: ConfigMap\nmetadata: {}", "an object lacks metadata.name");
        check("a: [", "");
    }
}
