//! Reset fields: fields that a write to a resource cannot change, so that it cannot own them either.

type Paths = &'static [&'static [&'static str]];

const NONE: Paths = &[];
const STATUS: Paths = &[&["status"]];
const SPEC: Paths = &[&["spec"]];
const METADATA_AND_SPEC: Paths = &[&["metadata"], &["spec"]];

/// The fields that a write to a built-in kind leaves alone; `has_status` says whether the kind has a
/// `status` subresource.
pub fn reset_fields(kind: &str, subresource: &str, has_status: bool) -> Paths {
    match (kind, subresource) {
        ("CertificateSigningRequest", "") => &[&["spec"], &["status"]],
        ("CertificateSigningRequest", "status") => &[&["spec"], &["status", "conditions"]],
        ("CertificateSigningRequest", "approval") => &[&["spec"], &["status", "certificate"]],
        ("Deployment", "status") => &[&["spec"], &["metadata", "labels"]],
        ("Pod", "status") => {
            &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
        }
        (
            "CustomResourceDefinition"
            | "DeviceTaintRule"
            | "FlowSchema"
            | "PriorityLevelConfiguration"
            | "ResourceClaim"
            | "StorageVersion"
            | "StorageVersionMigration"
            | "ValidatingAdmissionPolicy"
            | "VolumeAttachment",
            "status",
        ) => METADATA_AND_SPEC,
        _ => custom_reset_fields(subresource, has_status),
    }
}

/// The fields that a write to a custom resource leaves alone.
pub fn custom_reset_fields(subresource: &str, has_status: bool) -> Paths {
    match subresource {
        "status" => SPEC,
        _ if has_status => STATUS,
        _ => NONE,
    }
}
