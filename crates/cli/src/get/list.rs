//! A list request to one member: as table rows or as whole objects, page by page.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use controllers::rest::Rest;
use http::{Request, header};
use serde_json::Value;

use crate::kinds::Kind;

/// How many objects a page has at most.
const PAGE_OBJECTS_MAX: usize = 500;
/// How long a member may take for one page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(15);
/// The column with the age of an object.
const AGE_COLUMN: &str = "Age";
/// The media types that ask for table rows.
const TABLE_MEDIA_TYPES: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// The list request to every member.
pub struct ListRequest {
    /// The kind.
    pub kind: Kind,
    /// Empty for all.
    pub namespace: String,
    /// Only these; all if there are none.
    pub names: BTreeSet<String>,
    /// Only with these labels.
    pub selector: Option<String>,
    /// Whole objects instead of rows.
    pub is_whole: bool,
}

/// The response of a member.
#[derive(Default)]
pub struct Answer {
    /// Of a table: the columns as the server defines them.
    pub columns: Vec<Value>,
    /// Rows of a table, or objects.
    pub items: Vec<Value>,
}

impl Answer {
    /// The same without the column that changes by itself.
    pub fn without_ages(mut self) -> Self {
        let age = self.columns.iter().position(|column| text(column, "name") == AGE_COLUMN);
        if let Some(age) = age {
            self.columns.remove(age);
            for item in &mut self.items {
                let cells = item.get_mut("cells").and_then(Value::as_array_mut);
                cells.filter(|cells| age < cells.len()).map(|cells| cells.remove(age));
            }
        }
        self
    }

    /// The names of what was found.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|item| text(metadata(item), "name"))
    }
}

impl ListRequest {
    /// Asks one member.
    pub async fn ask(&self, rest: &Rest) -> Result<Answer> {
        let mut answer = Answer::default();
        let mut token = String::new();
        loop {
            let page = self.page(rest, &token).await.context("list the objects")?;
            let Some(page) = page else { return Ok(answer) };
            token = text(&page["metadata"], "continue").to_owned();
            let Value::Object(mut page) = page else { return Ok(answer) };
            if let Some(Value::Array(columns)) = page.remove("columnDefinitions") {
                answer.columns = columns;
            }
            let items = page.remove("rows").or_else(|| page.remove("items"));
            let items =
                items.and_then(|items| if let Value::Array(items) = items { Some(items) } else { None });
            let meant =
                |item: &Value| self.names.is_empty() || self.names.contains(text(metadata(item), "name"));
            answer.items.extend(items.unwrap_or_default().into_iter().filter(meant));
            if token.is_empty() {
                return Ok(answer);
            }
        }
    }

    /// One page; none if the member does not have the kind.
    async fn page(&self, rest: &Rest, token: &str) -> Result<Option<Value>> {
        let mut path =
            self.kind.collection(&self.namespace).path().with("limit", &PAGE_OBJECTS_MAX.to_string());
        let one_name = self.names.iter().next().filter(|_| self.names.len() == 1);
        let by_name = one_name.map(|name| format!("metadata.name={name}"));
        for (key, value) in [
            ("continue", Some(token)),
            ("labelSelector", self.selector.as_deref()),
            ("fieldSelector", by_name.as_deref()),
        ] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                path = path.with(key, value);
            }
        }
        let accept = if self.is_whole { "application/json" } else { TABLE_MEDIA_TYPES };
        let request = Request::get(path.target()?).header(header::ACCEPT, accept).body(Vec::new())?;
        let answer = tokio::time::timeout(PAGE_TIMEOUT, rest.client().request::<Value>(request));
        match answer.await.map_err(|_| anyhow!("no answer in {} s", PAGE_TIMEOUT.as_secs()))? {
            Ok(page) => Ok(Some(page)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The metadata of an object, or of the object that a row is about.
pub fn metadata(item: &Value) -> &Value {
    item.get("object").unwrap_or(item).get("metadata").unwrap_or(&Value::Null)
}

/// A text field, empty if it is not there.
pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
