//! Builds the client of each member. Members that the composition root gave a client keep it; for all others one is
//! built from their Cluster and its Secret, and rebuilt when either changes.

use api::Cluster;
use api::cluster::SyncMode;
use k8s_openapi::api::core::v1::Secret;

use crate::ctx::Ctx;
use crate::members::{ClientConfig, Unreachable};
use crate::rest::{Collection, Error, Rest};
use crate::runtime::{Action, Priority};

/// Brings the client of one member in line.
pub async fn reconcile(ctx: &Ctx, name: &str) -> Result<Action, Error> {
    let Some(cluster) = ctx.cache.cluster(name) else {
        ctx.members.leave(name);
        return Ok(Action::AwaitChange);
    };
    // An agent in the member comes to us.
    if ctx.members.is_given(name) || cluster.spec.sync_mode == SyncMode::Pull {
        return Ok(Action::AwaitChange);
    }
    let changed = match client_config(&ctx.control, &cluster).await? {
        Ok(config) if ctx.members.is_connected(name, &config) => false,
        Ok(config) => match config.client().await {
            Ok(client) => {
                ctx.members.connect(name, config, ctx.control.beside(client));
                true
            }
            Err(why) => ctx.members.disconnect(name, &why.to_string()),
        },
        Err(why) => ctx.members.disconnect(name, &why.to_string()),
    };
    ctx.queues.credentials.add(name.to_owned(), Priority::Resync);
    if changed {
        ctx.queues.cluster_status.add(name.to_owned(), Priority::User);
        let works = ctx.cache.works().in_cluster(name);
        works.into_iter().for_each(|key| ctx.queues.execution.add(key, Priority::Resync));
    }
    Ok(Action::AwaitChange)
}

/// The client configuration of a member that its Cluster and its Secret describe.
pub async fn client_config(
    control: &Rest,
    cluster: &Cluster,
) -> Result<Result<ClientConfig, Unreachable>, Error> {
    let name = &cluster.metadata.name;
    if cluster.spec.api_endpoint.is_empty() {
        return Ok(Err(Unreachable::NoEndpoint(name.clone())));
    }
    let Some(reference) = &cluster.spec.secret_ref else {
        return Ok(Err(Unreachable::NoReference(name.clone())));
    };
    let path = Collection::new("v1", "secrets", &reference.namespace).object(&reference.name);
    Ok(match control.get::<Secret>(&path).await? {
        Some(secret) => ClientConfig::of(cluster, &secret),
        None => Err(Unreachable::NoSecret {
            cluster: name.clone(),
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
        }),
    })
}
