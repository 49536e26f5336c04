//! How a command reaches members: as the controllers do, by Cluster and Secret, or by a context of the
//! kubeconfig that leads to the same endpoint, as those of `longshore up` do.

use anyhow::{Context as _, Result, anyhow};
use api::Cluster;
use api::kinds::CLUSTER;
use controllers::clients::client_config;
use controllers::rest::{Collection, Error, Rest};
use serde::Deserialize;

use crate::Hint;
use crate::connection::Control;

#[derive(Deserialize)]
struct Clusters {
    items: Vec<Cluster>,
}

/// Every member, by name.
pub async fn clusters(control: &Control) -> Result<Vec<Cluster>> {
    let clusters = Collection::of(&CLUSTER, "");
    let mut clusters: Clusters = control.rest.fetch(clusters.path()).await.map_err(|error| {
        let hint = match &error {
            Error::Refused { code: 403, .. } => {
                "only administrators may list Clusters; `longshore status` shows their names and whether \
                 they are ready"
            }
            _ => "check that the context is that of a control plane, or choose another with --context",
        };
        anyhow::Error::new(Hint(hint.to_owned())).context(error).context("list the clusters")
    })?;
    clusters.items.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    Ok(clusters.items)
}

/// The members of these names, all if there are none.
pub async fn chosen(control: &Control, names: &[String]) -> Result<Vec<Cluster>> {
    let all = clusters(control).await?;
    let known: Vec<&str> = all.iter().map(|cluster| cluster.metadata.name.as_str()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let hint = match known.is_empty() {
            true => "no cluster has joined".to_owned(),
            false => format!("there are {}", known.join(", ")),
        };
        return Err(anyhow::Error::new(Hint(hint)).context(format!("find cluster {unknown:?}")));
    }
    let is_meant = |cluster: &Cluster| names.is_empty() || names.contains(&cluster.metadata.name);
    Ok(all.into_iter().filter(is_meant).collect())
}

/// The client of one member.
pub async fn reach(control: &Control, cluster: &Cluster) -> Result<Rest> {
    let name = &cluster.metadata.name;
    let doing = || format!("reach cluster {name}");
    let by_secret = client_config(&control.rest, cluster).await.with_context(doing)?;
    let why_not = match by_secret {
        Ok(config) => match config.client().await {
            Ok(client) => return Ok(Rest::new(client)),
            Err(why_not) => why_not,
        },
        Err(why_not) => why_not,
    };
    let endpoint = &cluster.spec.api_endpoint;
    let by_context = match endpoint.as_str() {
        "" => None,
        endpoint => control.member_of_kubeconfig(endpoint).await,
    };
    by_context.ok_or_else(|| {
        let hint = match endpoint.as_str() {
            "" => "its Cluster has no spec.apiEndpoint".to_owned(),
            endpoint => format!(
                "add a context for {endpoint} to the kubeconfig, or join the cluster again \
                 with `longshore join`"
            ),
        };
        anyhow::Error::new(Hint(hint)).context(anyhow!("{why_not}")).context(doing())
    })
}
