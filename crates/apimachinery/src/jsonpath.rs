//! Kubernetes' dialect of JSONPath, as printer columns, scale paths and selectable fields use it.
//! Must not know what the path is for.

use serde_json::Value;

mod evaluate;
mod parse;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// `*`
    Wildcard,
    /// `..`
    Descend,
    Slice(Slice),
    Union(Vec<Vec<Step>>),
    Filter(Filter),
    /// A literal in a filter.
    Literal(Value),
}

/// `[from:to:step]`; a plain index `[n]` ends where it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slice {
    from: i64,
    to: SliceEnd,
    step: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SliceEnd {
    /// The plain index: one element.
    Single,
    At(i64),
    Last,
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Vec<Step>,
    comparison: Comparison,
    right: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Reads a path such as `.spec.replicas` or `{.items[*].name}`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
        Ok(Self { steps: parse::steps(inner, 0)? })
    }

    /// The values at the path, in order; missing fields are no error.
    pub fn find<'a>(&'a self, value: &'a Value) -> Result<Vec<&'a Value>, String> {
        evaluate::steps(&self.steps, vec![value], &evaluate::VisitBudget::all())
    }

    /// The first value at the path; nothing where the path does not fit.
    pub fn first<'a>(&'a self, value: &'a Value) -> Option<&'a Value> {
        // Most printer columns are plain fields: those need no list of candidates.
        match self.fields() {
            Some(mut names) => names.try_fold(value, |value, name| value.get(name)),
            None => self.find(value).ok()?.first().copied(),
        }
    }

    /// The field names, where the path is nothing but fields.
    pub fn fields(&self) -> Option<impl Iterator<Item = &str>> {
        let name = |step: &Step| matches!(step, Step::Field(_));
        self.steps.iter().all(name).then(|| {
            self.steps.iter().filter_map(|step| match step {
                Step::Field(name) => Some(name.as_str()),
                _ => None,
            })
        })
    }
}

#[cfg(test)]
mod tests;
