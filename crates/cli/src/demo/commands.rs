//! The kubectl command line for a step, as it really was done.

use scenario::{PlayedStep, Reference, StoryAction};
use serde_json::{Value, json};

/// The columns that a command may take before it goes on in the next line.
const COLUMNS: usize = 80;

/// The commands of a step, each as it would be typed.
pub fn shown(played: &PlayedStep<'_>) -> Vec<String> {
    let kubectl = match played.place {
        None => "kubectl".to_owned(),
        Some(member) => format!("kubectl --context {member}"),
    };
    match &played.action {
        StoryAction::Apply(manifests, text) => applied(&kubectl, manifests, text),
        StoryAction::Edit(reference, patch, text) => vec![edited(&kubectl, reference, patch, text)],
        StoryAction::Delete(references) => {
            let delete = |reference: &Reference| format!("$ {kubectl} delete {}", object(reference));
            references.iter().map(delete).collect()
        }
        StoryAction::Look(_) | StoryAction::Other => Vec::new(),
    }
}

fn applied(kubectl: &str, manifests: &[Value], text: &str) -> Vec<String> {
    let created: Option<Vec<String>> = manifests.iter().map(|manifest| created(kubectl, manifest)).collect();
    created.unwrap_or_else(|| {
        let text = text.trim_end();
        vec![format!("$ {kubectl} apply -f - <<EOF\n{text}\nEOF")]
    })
}

/// A Deployment that has nothing but what `kubectl create deployment` gives it.
fn created(kubectl: &str, manifest: &Value) -> Option<String> {
    let name = manifest["metadata"]["name"].as_str()?;
    let replicas = manifest["spec"]["replicas"].as_i64()?;
    let image = manifest.pointer("/spec/template/spec/containers/0/image")?.as_str()?;
    let container = image.split(':').next()?;
    let mut plain = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": container, "image": image }] },
            },
        },
    });
    let namespace = manifest["metadata"].get("namespace");
    if let Some(namespace) = namespace {
        plain["metadata"]["namespace"] = namespace.clone();
    }
    let place = namespace.and_then(Value::as_str).map(|name| format!(" -n {name}")).unwrap_or_default();
    let command =
        format!("$ {kubectl} create deployment {name}{place} --image={image} --replicas={replicas}");
    (plain == *manifest).then_some(command)
}

fn edited(kubectl: &str, reference: &Reference, patch: &Value, text: &str) -> String {
    let object = object(reference);
    if let Some(image) = image(patch) {
        return format!("$ {kubectl} set image {object} {image}");
    }
    if let Some(replicas) = patch["spec"]["replicas"].as_i64()
        && *patch == json!({ "spec": { "replicas": replicas } })
    {
        return format!("$ {kubectl} scale {object} --replicas={replicas}");
    }
    let head = format!("$ {kubectl} patch {object} --type=merge -p");
    let short = format!("'{patch}'");
    if head.len() + 1 + short.len() <= COLUMNS {
        format!("{head} {short}")
    } else if "  ".len() + short.len() <= COLUMNS {
        format!("{head} \\\n  {short}")
    } else {
        format!("{head} '\n{}'", text.trim_end())
    }
}

/// `container=image`, if that is all that a patch changes.
fn image(patch: &Value) -> Option<String> {
    let container = patch.pointer("/spec/template/spec/containers/0")?;
    let (name, image) = (container["name"].as_str()?, container["image"].as_str()?);
    let containers = json!([{ "name": name, "image": image }]);
    let only = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    (only == *patch).then(|| format!("{name}={image}"))
}

/// An object as kubectl takes it.
fn object(reference: &Reference) -> String {
    let kind = reference.kind.to_lowercase();
    let place = reference.namespace.as_ref().map(|name| format!("-n {name} ")).unwrap_or_default();
    format!("{place}{kind} {}", reference.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reference: &str, patch: Value, expected: &str) {
        let reference = reference.parse().expect("it names an object");
        assert_eq!(edited("kubectl", &reference, &patch, "text\n"), expected);
    }

    #[test]
    fn edits_are_typed_in_the_shortest_way() {
        let image =
            |container: Value| json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
        check(
            "Deployment web/shop",
            image(json!({ "name": "shop", "image": "shop:2" })),
            "$ kubectl set image -n web deployment shop shop=shop:2",
        );
        check(
            "Deployment shop",
            json!({ "spec": { "replicas": 3 } }),
            "$ kubectl scale deployment shop --replicas=3",
        );
        check(
            "Deployment shop",
            json!({ "spec": { "replicas": 3, "paused": true } }),
            "$ kubectl patch deployment shop --type=merge -p \\\n  '{\"spec\":{\"paused\":true,\"replicas\":3}}'",
        );
        check(
            "PropagationPolicy pp",
            json!({ "spec": "x".repeat(80) }),
            "$ kubectl patch propagationpolicy pp --type=merge -p '\ntext'",
        );
        check(
            "PropagationPolicy pp",
            json!({ "spec": null }),
            "$ kubectl patch propagationpolicy pp --type=merge -p '{\"spec\":null}'",
        );
    }

    #[test]
    fn a_plain_deployment_is_created_and_any_other_applied() {
        let mut manifest = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "shop", "namespace": "web", "labels": { "app": "shop" } },
            "spec": {
                "replicas": 2,
                "selector": { "matchLabels": { "app": "shop" } },
                "template": {
                    "metadata": { "labels": { "app": "shop" } },
                    "spec": { "containers": [{ "name": "shop", "image": "shop:1" }] },
                },
            },
        });
        let commands = applied("kubectl", std::slice::from_ref(&manifest), "text");
        assert_eq!(commands, ["$ kubectl create deployment shop -n web --image=shop:1 --replicas=2"]);
        manifest["spec"]["paused"] = true.into();
        assert_eq!(applied("kubectl", &[manifest], "text\n"), ["$ kubectl apply -f - <<EOF\ntext\nEOF"]);
    }
}
