//! What expressions (CEL) need of this server: regular expressions as Go reads them, quantities, named formats,
//! and the types of values that a schema describes. Must not know where expressions stand.

use cel::Hooks;

use crate::validate;
use apimachinery::names::{self, NameRule};
use apimachinery::quantity::Quantity;

mod admission;
mod declared;
mod shaped;

pub use admission::{Scope, environment as admission_environment};
pub use declared::{Declared, declared};
pub use shaped::shaped;

/// What one expression may cost when it is evaluated.
pub const COST_OF_ONE_MAX: u64 = 1_000_000;
/// What all expressions about one object may cost.
pub const COST_OF_ALL_MAX: u64 = 10_000_000;
/// What the conditions of a webhook or a policy may cost.
pub const COST_OF_CONDITIONS_MAX: u64 = 2_500_000;
/// The longest message that an expression may make.
pub const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// What the library of expressions asks of this server.
pub fn hooks() -> Hooks {
    Hooks {
        pattern: |source| validate::compiled_pattern(source).map_err(|fault| fault.to_string()),
        quantity: |text| text.parse::<Quantity>().ok().map(Quantity::billionths),
        format: format_faults,
    }
}

/// What is wrong with a text of one of the formats that have names in expressions.
fn format_faults(format: &str, text: &str) -> Option<Vec<String>> {
    let by_schema = |format: &str| match validate::format_holds(format, text) {
        true => Vec::new(),
        false => vec![format!("must be a valid {format}")],
    };
    Some(match format {
        "dns1123Label" => names::dns_label(text),
        "dns1123Subdomain" => names::dns_subdomain(text),
        "dns1035Label" => names::dns_1035_label(text),
        "dns1123LabelPrefix" => NameRule::Label.check_prefix(text),
        "dns1123SubdomainPrefix" => NameRule::Subdomain.check_prefix(text),
        "dns1035LabelPrefix" => names::dns_1035_label(text.strip_suffix('-').unwrap_or(text)),
        "qualifiedName" => names::label_key(text),
        "labelValue" => names::label_value(text),
        "uri" | "uuid" | "byte" | "date" => by_schema(format),
        "datetime" => by_schema("date-time"),
        _ => return None,
    })
}
