//! The credentials of a member as the control plane keeps them: two Secrets, named and filled as Karmada's.

use anyhow::{Context as _, Result};
use api::kinds::CLUSTER;
use api::labels;
use controllers::rest::{Collection, Rest};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::account::Tokens;
use super::endpoint::{CA_BUNDLE, MemberEndpoint};
use super::remove;

/// The Secret of the account that acts for users.
pub fn impersonator(name: &str) -> String {
    format!("{name}-impersonator")
}

/// What the controllers need to get in.
pub fn credentials(place: &MemberEndpoint, tokens: &Tokens) -> Value {
    json!({ CA_BUNDLE: bytes(&place.authority), "token": bytes(tokens.controllers.text.as_bytes()) })
}

fn bytes(bytes: &[u8]) -> Value {
    json!(ByteString(bytes.to_vec()))
}

/// Writes the credentials and then the Cluster, so that no controller finds a Cluster without credentials. The Cluster
/// owns them: they are deleted with it.
pub async fn write_credentials(
    control: &Rest,
    namespace: &str,
    place: &MemberEndpoint,
    tokens: &Tokens,
    cluster: &Value,
) -> Result<()> {
    let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
    let marks = [(labels::SYSTEM, labels::TRUE)];
    plane::ensure_namespace(control, namespace, &marks)
        .await
        .with_context(|| format!("make namespace {namespace}"))?;
    let users = json!({ "token": bytes(tokens.impersonator.text.as_bytes()) });
    let secrets = [
        (name.to_owned(), credentials(place, tokens), tokens.controllers.annotations()),
        (impersonator(name), users, tokens.impersonator.annotations()),
    ];
    write(control, namespace, &secrets, &json!([])).await?;
    let path = Collection::of(&CLUSTER, "").object(name);
    let joined =
        control.apply(&path, cluster, true).await.with_context(|| format!("write Cluster {name}"))?;
    let owners = json!([{
        "apiVersion": CLUSTER.api_version(), "kind": CLUSTER.kind,
        "name": name, "uid": joined["metadata"]["uid"],
    }]);
    write(control, namespace, &secrets, &owners).await
}

async fn write(
    control: &Rest,
    namespace: &str,
    secrets: &[(String, Value, Value)],
    owners: &Value,
) -> Result<()> {
    let collection = Collection::new("v1", "secrets", namespace);
    for (name, data, annotations) in secrets {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
            "metadata": {
                "name": name, "namespace": namespace, "ownerReferences": owners, "annotations": annotations,
                "labels": { labels::SYSTEM: labels::TRUE },
            },
        });
        let written = control.apply(&collection.object(name), &secret, true).await;
        written.with_context(|| format!("write Secret {namespace}/{name}"))?;
    }
    Ok(())
}

/// Deletes the credentials of a member that has gone, or never came.
pub async fn delete_credentials(control: &Rest, namespace: &str, name: &str) -> Result<()> {
    let collection = Collection::new("v1", "secrets", namespace);
    for secret in [name.to_owned(), impersonator(name)] {
        let path = collection.object(&secret);
        let found: Option<Value> =
            control.get(&path).await.with_context(|| format!("read Secret {namespace}/{secret}"))?;
        if found.is_some_and(|found| is_of(&found, name)) {
            remove(control, &path).await.with_context(|| format!("delete Secret {namespace}/{secret}"))?;
        }
    }
    Ok(())
}

/// Whether joining the member made a Secret: others may have one of the same name, or be called as we call it.
fn is_of(secret: &Value, name: &str) -> bool {
    let metadata = &secret["metadata"];
    let mut owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    metadata["labels"][labels::SYSTEM] == labels::TRUE && owners.all(|owner| owner["name"] == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_others_are_not_forgotten() {
        let check = |labels: Value, owners: Value, expected: bool| {
            let metadata = json!({ "labels": labels, "ownerReferences": owners });
            assert_eq!(is_of(&json!({ "metadata": metadata }), "member1"), expected, "{metadata}");
        };
        let ours = json!({ "karmada.io/system": "true" });
        check(ours.clone(), json!([]), true);
        check(ours.clone(), json!([{ "name": "member1" }]), true);
        check(ours, json!([{ "name": "member2" }]), false);
        check(json!({}), json!([]), false);
    }
}
