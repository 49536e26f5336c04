//! Lists a whole collection with pagination (`limit` and `continue`), so that no response grows with what exists.

use api::Unread;
use serde::Deserialize;

use super::{Collection, Error, Rest};

/// How many objects a page has.
const PAGE: &str = "500";

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    items: Vec<Unread>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}

impl Rest {
    /// Shows every object of a collection, and answers with the revision at which they were so. Items of a list may
    /// lack apiVersion and kind; `selector` is a label selector.
    pub async fn pages(
        &self,
        collection: &Collection,
        selector: &str,
        mut each: impl FnMut(Unread) + Send,
    ) -> Result<String, Error> {
        let mut next = String::new();
        loop {
            let path =
                collection.path().with("limit", PAGE).with("labelSelector", selector).with("continue", &next);
            let page: Page = self.fetch(&path).await?;
            page.items.into_iter().for_each(&mut each);
            next = page.metadata.next;
            if next.is_empty() {
                return Ok(page.metadata.resource_version);
            }
        }
    }
}
