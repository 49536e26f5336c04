//! The name format of each kind (DNS subdomain, DNS label, path segment). Must not know the field a name stands in.

use super::{dns_1035_label, dns_label, dns_subdomain, over, path_segment, path_segment_parts};

/// Longest name of a CronJob: its Jobs append eleven more.
const CRON_JOB_BYTES_MAX: usize = 52;

/// How the objects of a kind may be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// Dot-separated DNS-1123 labels; what most kinds ask for.
    Subdomain,
    /// One DNS-1123 label.
    Label,
    /// One DNS-1035 label: as `Label`, but a letter comes first.
    Dns1035Label,
    /// Whatever can stand in a URL path.
    PathSegment,
    /// A subdomain that leaves room for the eleven characters its Jobs append.
    CronJob,
}

impl NameRule {
    /// The rule of a kind, built-in or custom.
    pub fn of_kind(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("", "Namespace") => Self::Label,
            ("apps", "StatefulSet") => Self::Label,
            ("batch", "CronJob") => Self::CronJob,
            ("", "Service") => Self::Dns1035Label,
            ("rbac.authorization.k8s.io", _) => Self::PathSegment,
            ("certificates.k8s.io", "CertificateSigningRequest") => Self::PathSegment,
            ("policy", "PodDisruptionBudget") => Self::PathSegment,
            _ => Self::Subdomain,
        }
    }

    /// What is wrong with a name; nothing if it is fine.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            Self::Subdomain => dns_subdomain(name),
            Self::Label => dns_label(name),
            Self::Dns1035Label => dns_1035_label(name),
            Self::PathSegment => path_segment(name),
            Self::CronJob => {
                let long = over(name, CRON_JOB_BYTES_MAX, "characters");
                dns_subdomain(name).into_iter().chain(long).collect()
            }
        }
    }

    /// What is wrong with a `generateName`, to which random characters will be appended.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        match self {
            Self::PathSegment => path_segment_parts(prefix),
            Self::CronJob => dns_subdomain(&masked(prefix)),
            _ => self.check(&masked(prefix)),
        }
    }
}

/// Random characters follow the prefix, so that a dash at its end is no dash at the end of the name.
fn masked(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut text = rest.to_owned();
            text.pop();
            text + "a"
        }
        _ => prefix.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::NameRule;

    #[track_caller]
    fn check((group, kind): (&str, &str), name: &str, starts: &[&str]) {
        let wrong = NameRule::of_kind(group, kind).check(name);
        assert_eq!(wrong.len(), starts.len(), "{kind} {name:?}: {wrong:?}");
        for (message, start) in wrong.iter().zip(starts) {
            assert!(message.starts_with(start), "{kind} {name:?}: {message:?}");
        }
    }

    #[test]
    fn kinds_name_their_objects_by_their_own_rules() {
        let cron_job = ("batch", "CronJob");
        check(cron_job, &"x".repeat(52), &[]);
        check(cron_job, &"x".repeat(53), &["must be no more than 52 characters"]);
        check(cron_job, &"X".repeat(53), &["a lowercase RFC 1123 subdomain", "must be no more than 52"]);
        check(("", "Service"), "1x", &["a DNS-1035 label"]);
        check(("", "Pod"), "1x", &[]);
        check(("", "Namespace"), "a.b", &["must not contain dots"]);
        check(("apps", "StatefulSet"), "a.b", &["must not contain dots"]);
        check(("rbac.authorization.k8s.io", "Role"), "A:b", &[]);
        check(("rbac.authorization.k8s.io", "Role"), "A/b", &["may not contain '/'"]);
        check(("policy", "PodDisruptionBudget"), "A_b", &[]);
        check(("example.com", "Anything"), "A", &["a lowercase RFC 1123 subdomain"]);
    }

    #[test]
    fn a_prefix_may_end_in_a_dash() {
        assert_eq!(NameRule::Subdomain.check_prefix("web-"), [""; 0]);
        assert_eq!(NameRule::PathSegment.check_prefix(".."), [""; 0]);
        assert_eq!(NameRule::CronJob.check_prefix(&"x".repeat(60)), [""; 0]);
        assert!(!NameRule::Label.check_prefix("-web").is_empty());
    }
}
