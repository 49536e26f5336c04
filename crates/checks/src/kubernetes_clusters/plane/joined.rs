//! The joined members: joins them as a scenario describes them, cuts them off, and removes them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use http::Method;
use scenario::Cluster;
use serde_json::{Value, json};

use super::super::relay::Relay;
use super::super::until;
use super::{Plane, READY_TIMEOUT};

/// Where the clusters of a control plane are listed.
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
/// Where the pods of a member are listed.
const PODS: &str = "/api/v1/pods";
/// How often the controllers ask a member how much room it has.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);
/// How long members may take to recover.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(90);

impl Plane {
    /// Joins every member without waiting until it is ready: no controllers need to run yet.
    pub async fn join_without_waiting(&mut self) -> Result<()> {
        for number in 0..self.bed.members.len() {
            let usual = Cluster::named(&self.bed.members[number].name);
            self.join(number, &usual).await?;
        }
        Ok(())
    }

    /// Joins members, or lets them go, until those that are there are as described; waits until they are ready.
    pub async fn arrange(&mut self, wanted: &[Cluster]) -> Result<()> {
        for number in 0..self.joined.len() {
            if self.joined[number].is_some() && self.joined[number].as_ref() != wanted.get(number) {
                self.leave(number)?;
            }
        }
        for (number, cluster) in wanted.iter().enumerate() {
            if self.joined.get(number).is_none_or(Option::is_none) {
                self.join(number, cluster).await?;
            }
        }
        self.until_ready().await
    }

    /// Joins another member with this description, and answers with its kubeconfig.
    pub async fn join_another(&mut self, wanted: &Cluster) -> Result<PathBuf> {
        let same = |joined: &Option<Cluster>| joined.as_ref().is_some_and(|one| one.name == wanted.name);
        // A name that joined before is the same cluster.
        let number = self
            .joined
            .iter()
            .position(same)
            .unwrap_or_else(|| self.joined.iter().position(Option::is_none).unwrap_or(self.joined.len()));
        self.join(number, wanted).await?;
        // A user who joins a cluster waits until it is ready.
        self.until_known("that who joined is ready", std::slice::from_ref(wanted)).await?;
        Ok(self.bed.members[number].kubeconfig.clone())
    }

    /// Makes a member reachable for the controllers, or not.
    pub fn reach(&self, name: &str, reachable: bool) -> Result<()> {
        let of = |joined: &Option<Cluster>| joined.as_ref().is_some_and(|one| one.name == name);
        let number = self.joined.iter().position(of).with_context(|| format!("find {name}"))?;
        match reachable {
            true => self.ways[number].mend(),
            false => self.ways[number].cut(),
        }
        Ok(())
    }

    /// Lets go of every member, whatever a scenario made of it; nothing is known about them afterwards.
    pub fn forget_members(&mut self) -> Result<()> {
        self.ways.iter().for_each(Relay::mend);
        (0..self.joined.len()).try_for_each(|number| self.leave(number))
    }

    fn leave(&mut self, number: usize) -> Result<()> {
        let Some(cluster) = self.joined[number].take() else { return Ok(()) };
        let mut command = self.longshore(["unjoin".into(), cluster.name.clone().into()]);
        command.arg("--cluster-kubeconfig").arg(&self.bed.members[number].kubeconfig);
        let done = command.args(["--force", "--timeout=30s"]).output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        let is_gone = done.status.success() || said.contains("there is no such member");
        ensure!(is_gone, "unjoin {}: {said}\n{}", cluster.name, self.last_words());
        Ok(())
    }

    async fn join(&mut self, number: usize, wanted: &Cluster) -> Result<()> {
        while self.bed.members.len() <= number {
            self.bed.grow().await?;
        }
        while self.ways.len() <= number {
            self.ways.push(Relay::start(&[self.bed.members[self.ways.len()].port()?]).await?);
            self.joined.push(None);
        }
        self.bed.furnish(number, wanted).await?;
        let mut command = self.longshore(["join".into(), wanted.name.clone().into()]);
        command.arg("--cluster-kubeconfig").arg(&self.bed.members[number].kubeconfig);
        command.arg(format!("--cluster-endpoint=https://127.0.0.1:{}", self.ways[number].port()));
        let places = [("provider", &wanted.provider), ("region", &wanted.region), ("zones", &wanted.zone)];
        for (place, name) in places.into_iter().filter(|(_, name)| !name.is_empty()) {
            command.arg(format!("--cluster-{place}={name}"));
        }
        let done = command.output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "join {}: {said}\n{}", wanted.name, self.last_words());
        if !wanted.labels.is_empty() {
            let patch = json!({ "metadata": { "labels": wanted.labels } });
            let path = format!("{CLUSTERS}/{}", wanted.name);
            let (status, answer) =
                self.bed.control.api_client().request(Method::PATCH, &path, patch.to_string()).await;
            ensure!(status.is_success(), "label {}: {answer}", wanted.name);
        }
        self.joined[number] = Some(wanted.clone());
        Ok(())
    }

    /// Waits until every member is ready, and known to be as it was described.
    pub async fn until_ready(&self) -> Result<()> {
        let joined: Vec<Cluster> = self.joined.iter().flatten().cloned().collect();
        self.until_known("that every member is ready", &joined).await
    }

    /// Waits until nothing runs in any member, and the controllers know it: between members that are alike otherwise,
    /// the room that they have decides.
    pub async fn until_empty(&mut self) -> Result<()> {
        let all = self.joined.iter().zip(&self.bed.members);
        for (_, member) in all.filter(|(joined, _)| joined.is_some()) {
            let api_client = member.api_client();
            until(&format!("that no pods are left in {}", member.name), READY_TIMEOUT, async || {
                let Ok(mut connection) = api_client.connect().await else { return false };
                let answer = connection.json(Method::GET, PODS, "").await;
                answer.is_ok_and(|(_, list)| list["items"].as_array().is_some_and(Vec::is_empty))
            })
            .await?;
        }
        let api_client = self.bed.control.api_client();
        let begun = Instant::now();
        while begun.elapsed() < READY_TIMEOUT {
            let (_, list) = api_client.connect().await?.json(Method::GET, CLUSTERS, "").await?;
            if list["items"].as_array().is_some_and(|all| all.iter().all(has_all_its_room)) {
                return Ok(());
            }
            self.pass(STATUS_INTERVAL).await?;
        }
        bail!(
            "it is not known after {} s that members are empty\n{}",
            READY_TIMEOUT.as_secs(),
            self.last_words()
        )
    }

    /// On a busy machine a member may not answer within the strides of the clock, and counts as not ready for some
    /// seconds afterwards, which no scenario asked for. One that is not ready for another reason stays as it is.
    pub(super) async fn until_recovered(&self) {
        let api_client = self.bed.control.api_client();
        let ways = self.ways.iter().zip(&self.joined).filter(|(way, _)| way.is_open());
        let reachable: Vec<&str> =
            ways.filter_map(|(_, joined)| Some(joined.as_ref()?.name.as_str())).collect();
        let recovered = until("that members are ready again", RECOVERY_TIMEOUT, async || {
            let Ok(mut connection) = api_client.connect().await else { return false };
            let answer = connection.json(Method::GET, CLUSTERS, "").await;
            let is_well = |object: &Value| {
                let metadata = &object["metadata"];
                let is_member = metadata["name"].as_str().is_some_and(|name| reachable.contains(&name));
                !is_member || metadata["deletionTimestamp"].is_string() || says_ready(object)
            };
            answer.is_ok_and(|(_, list)| list["items"].as_array().is_some_and(|all| all.iter().all(is_well)))
        });
        drop(recovered.await);
    }

    async fn until_known(&self, what: &str, wanted: &[Cluster]) -> Result<()> {
        let api_client = self.bed.control.api_client();
        until(what, READY_TIMEOUT, async || {
            let Ok(mut connection) = api_client.connect().await else { return false };
            let answer = connection.json(Method::GET, CLUSTERS, "").await;
            answer.is_ok_and(|(_, list)| wanted.iter().all(|one| is_ready(&list, one)))
        })
        .await
        .with_context(|| self.last_words())
    }
}

fn is_ready(list: &Value, wanted: &Cluster) -> bool {
    let mut all = list["items"].as_array().into_iter().flatten();
    let object = all.find(|object| object["metadata"]["name"] == wanted.name.as_str());
    object.is_some_and(|object| wanted.is_described_by(object) && says_ready(object))
}

fn has_all_its_room(object: &Value) -> bool {
    let summary = &object["status"]["resourceSummary"];
    let is_none = |needed: &Value| needed.as_object().is_none_or(serde_json::Map::is_empty);
    is_none(&summary["allocated"]) && is_none(&summary["allocating"])
}

fn says_ready(object: &Value) -> bool {
    object["status"].to_string().contains("ClusterReady")
}
