//! Reports of scenario runs for programs: JSON, or JUnit XML for continuous integration.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use scenario::{FileError, ScenarioResult, Verdict};
use serde::Serialize;

/// A form for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// One JSON document.
    Json,
    /// JUnit's XML.
    Junit,
}

/// One scenario, played in one way.
#[derive(Debug, Serialize)]
pub struct Case {
    /// The file.
    pub path: String,
    /// What the scenario shows.
    pub title: String,
    /// How it was played; empty if it cannot be read.
    pub way: String,
    /// What became of it.
    pub result: CaseResult,
    /// The step that failed, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// The line of the file in which that step begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What is not as expected, or why it was skipped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// How long it took.
    pub milliseconds: u64,
    /// The same for people.
    #[serde(skip)]
    pub text: String,
}

/// What became of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CaseResult {
    /// Everything was as expected.
    Passed,
    /// Something was not, or the file cannot be read.
    Failed,
    /// It cannot be played here.
    Skipped,
}

/// Everything that was played.
#[derive(Debug, Default)]
pub struct Report {
    cases: Vec<Case>,
}

impl Case {
    /// A scenario that was played.
    pub fn of(outcome: &ScenarioResult<'_>, text: String) -> Self {
        let ScenarioResult { scenario, way, seed, verdict, took } = outcome;
        let (result, step, problems) = match verdict {
            Verdict::Passed => (CaseResult::Passed, None, Vec::new()),
            Verdict::Skipped(why) => (CaseResult::Skipped, None, vec![why.clone()]),
            Verdict::Differs(lines) => (CaseResult::Failed, None, lines.clone()),
            Verdict::Failed(failure) => (CaseResult::Failed, Some(failure.step), failure.problems.clone()),
        };
        Self {
            path: scenario.path.display().to_string(),
            title: scenario.title.clone(),
            way: if seed.is_some() { way.name().to_owned() } else { "live".to_owned() },
            result,
            step,
            line: step.and_then(|step| scenario.line_of(step)),
            problems,
            milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            text,
        }
    }

    /// A file that cannot be read.
    pub fn unreadable(path: &Path, error: &FileError) -> Self {
        Self {
            path: path.display().to_string(),
            title: "unreadable".to_owned(),
            way: String::new(),
            result: CaseResult::Failed,
            step: None,
            line: None,
            problems: vec![error.to_string()],
            milliseconds: 0,
            text: format!("FAILED  {error}\n"),
        }
    }
}

impl Report {
    /// Notes what became of one.
    pub fn add(&mut self, case: Case) {
        self.cases.push(case);
    }

    /// How many failed.
    pub fn failed(&self) -> usize {
        self.count(CaseResult::Failed)
    }

    /// One line for people.
    pub fn summary(&self, took: Duration) -> String {
        let paths: std::collections::BTreeSet<&str> =
            self.cases.iter().map(|case| case.path.as_str()).collect();
        let (passed, failed) = (self.count(CaseResult::Passed), self.failed());
        let skipped = match self.count(CaseResult::Skipped) {
            0 => String::new(),
            skipped => format!(", {skipped} skipped"),
        };
        let plural = if paths.len() == 1 { "" } else { "s" };
        let seconds = took.as_secs_f64();
        format!(
            "{} scenario{plural}: {passed} passed, {failed} failed{skipped} in {seconds:.1} s\n",
            paths.len()
        )
    }

    /// The whole report in a form for programs, in the order of the files.
    pub fn printed(&self, format: ReportFormat, took: Duration) -> Result<String> {
        let mut cases: Vec<&Case> = self.cases.iter().collect();
        cases.sort_by(|a, b| a.path.cmp(&b.path));
        match format {
            ReportFormat::Json => {
                let document = serde_json::json!({
                    "passed": self.count(CaseResult::Passed),
                    "failed": self.failed(),
                    "skipped": self.count(CaseResult::Skipped),
                    "cases": cases,
                });
                Ok(serde_json::to_string_pretty(&document).context("write JSON")? + "\n")
            }
            ReportFormat::Junit => Ok(self.junit(&cases, took)),
        }
    }

    fn junit(&self, cases: &[&Case], took: Duration) -> String {
        let seconds = took.as_secs_f64();
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"longshore\" tests=\"{}\" \
             failures=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\">\n",
            cases.len(),
            self.failed(),
            self.count(CaseResult::Skipped),
        );
        for case in cases {
            let name = format!("{} ({})", case.title, case.way);
            let seconds = Duration::from_millis(case.milliseconds).as_secs_f64();
            let line = case.line.map(|line| format!(" line=\"{line}\"")).unwrap_or_default();
            let _ = write!(
                text,
                "  <testcase classname=\"{}\" name=\"{}\" file=\"{}\"{line} time=\"{seconds:.3}\"",
                escaped(&case.path),
                escaped(&name),
                escaped(&case.path),
            );
            let problems = escaped(&case.problems.join("\n"));
            let first = escaped(case.problems.first().map_or("", String::as_str));
            let _ = match case.result {
                CaseResult::Passed => writeln!(text, "/>"),
                CaseResult::Skipped => {
                    writeln!(text, ">\n    <skipped message=\"{first}\"/>\n  </testcase>")
                }
                CaseResult::Failed => {
                    writeln!(text, ">\n    <failure message=\"{first}\">{problems}</failure>\n  </testcase>")
                }
            };
        }
        text + "</testsuite>\n"
    }

    fn count(&self, result: CaseResult) -> usize {
        self.cases.iter().filter(|case| case.result == result).count()
    }
}

/// A text as it stands in XML; characters that XML does not have are left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            letter if letter.is_control() => {}
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_for_xml() {
        assert_eq!(escaped("a<b & \"c\"\u{1b}\nd>"), "a&lt;b &amp; &quot;c&quot;&#10;d&gt;");
    }
}
