//! What `/metrics` of the API server says about how full it is, as warnings. Must not know how to ask for it.

/// From this part of a limit on, an administrator is warned.
const WARNING_RATIO: f64 = 0.8;

const WHOLE: &str = "apiserver_storage_used_ratio";
const NAMESPACE: &str = "apiserver_storage_namespace_used_ratio";

/// The limits that are nearly reached, the whole store first.
pub fn warnings(metrics: &str) -> Vec<String> {
    let whole = metrics.lines().filter_map(|line| {
        let ratio = warned(line.strip_prefix(WHOLE)?)?;
        Some(format!(
            "{} % of the storage limit of the control plane is used; at 100 % the server rejects writes: \
             delete objects that are not needed, or raise --storage-max-bytes",
            percent(ratio)
        ))
    });
    let namespaces = metrics.lines().filter_map(|line| {
        let (labels, value) = line.strip_prefix(NAMESPACE)?.strip_prefix('{')?.split_once('}')?;
        let ratio = warned(value)?;
        let (name, limit) = (label(labels, "namespace")?, label(labels, "limit")?);
        Some(format!(
            "{} % of the limit of {limit} in namespace {name} is used; at 100 % the server rejects creates \
             there: delete objects that are not needed, or raise --namespace-max-{limit}",
            percent(ratio)
        ))
    });
    whole.chain(namespaces).collect()
}

/// A value, if it is worth a warning.
fn warned(value: &str) -> Option<f64> {
    value.trim().parse().ok().filter(|ratio| *ratio >= WARNING_RATIO)
}

fn percent(ratio: f64) -> u64 {
    (ratio * 100.0) as u64
}

fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    labels.split(',').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key == name).then(|| value.trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_warned_about_from_four_fifths_on() {
        let metrics = "\
# HELP apiserver_storage_used_ratio How much of the limit of all objects is used.
# TYPE apiserver_storage_used_ratio gauge
apiserver_storage_used_ratio 0.8349
apiserver_storage_namespace_used_ratio{limit=\"objects\",namespace=\"team-a\"} 0.9100
apiserver_storage_namespace_used_ratio{limit=\"bytes\",namespace=\"team-b\"} 0.7999
";
        let warnings = warnings(metrics);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(
            warnings[0].starts_with("83 % of the storage limit of the control plane is used"),
            "{warnings:?}"
        );
        assert!(
            warnings[1].starts_with("91 % of the limit of objects in namespace team-a is used"),
            "{warnings:?}"
        );
        assert!(warnings[1].ends_with("--namespace-max-objects"), "{warnings:?}");
    }

    #[test]
    fn a_server_that_does_not_tell_is_not_warned_about() {
        assert!(warnings("apiserver_request_total{code=\"200\"} 1\n").is_empty());
    }
}
