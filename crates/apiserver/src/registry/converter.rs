//! The conversion webhook of a CustomResourceDefinition, as `spec.conversion` describes it. How it is called is in
//! `conversion`.

use serde_json::Value;

use crate::webhook_client::Address;

/// The webhook that converts the objects of a kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Converter {
    /// Where it is.
    pub address: Address,
    /// The version of the review that it understands, the first in its list that this server speaks.
    pub review: &'static str,
}

impl Converter {
    /// Reads `spec.conversion`; none where versions differ in nothing but their name.
    pub fn of(conversion: &Value) -> Option<Self> {
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        let versions = webhook["conversionReviewVersions"].as_array().into_iter().flatten();
        let review = versions.filter_map(Value::as_str).find_map(|version| match version {
            "v1" => Some("apiextensions.k8s.io/v1"),
            "v1beta1" => Some("apiextensions.k8s.io/v1beta1"),
            _ => None,
        });
        Some(Self { address: Address::read(&webhook["clientConfig"]), review: review? })
    }
}
