//! Random requests against a model of Kubernetes that is too simple to be wrong. Every answer agrees with
//! it, every write takes exactly one revision, and every watch saw exactly what happened.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::client::{Ask, Server};

mod steps;
mod watches;
mod world;

use steps::{Begin, Condition, Kind, Known, NAMESPACES, Place, Step, Wish, step};
use watches::Watching;
use world::{Effect, Thing, Verdict, World};

/// A list that is read page by page.
struct Pages {
    kind: Kind,
    scope: Option<&'static str>,
    selector: &'static str,
    limit: usize,
    token: String,
    revision: u64,
    /// What is still to come.
    rest: Vec<(Place, Thing)>,
}

struct Run {
    server: Server,
    world: World,
    pages: Vec<Pages>,
    watches: Vec<Watching>,
}

fn collection(kind: Kind, scope: Option<&str>) -> String {
    let namespace = scope.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
    match kind {
        Kind::Map => format!("/api/v1{namespace}/configmaps"),
        Kind::Widget => format!("/apis/model.io/v1{namespace}/widgets"),
    }
}

fn path(place: Place) -> String {
    format!("{}/{}", collection(place.kind, Some(place.namespace)), place.name)
}

fn definition() -> Value {
    let spec = json!({ "type": "object", "properties": { "value": { "type": "string" } } });
    json!({
        "metadata": { "name": "widgets.model.io" },
        "spec": {
            "group": "model.io", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } },
            }],
        },
    })
}

impl Run {
    async fn new() -> Self {
        let server = Server::on(store::Store::in_memory()).await;
        server.define(definition()).await;
        let mut world = World::default();
        for namespace in NAMESPACES {
            server.namespace(namespace).await;
            world.namespaces.insert(namespace, false);
        }
        world.revision = server.store().revision();
        Self { server, world, pages: Vec::new(), watches: Vec::new() }
    }

    async fn take(&mut self, step: &Step) {
        match step.clone() {
            Step::Create(place, wish) => self.create(place, &wish).await,
            Step::Update(place, wish, known) => self.update(place, &wish, known).await,
            Step::Merge(place, wish, known) => self.merge(place, &wish, known).await,
            Step::JsonPatch(place, value, fits) => self.json_patch(place, value, fits).await,
            Step::Delete(place, condition, dry_run) => self.delete(place, condition, dry_run).await,
            Step::DeleteCollection(kind, namespace, selector) => self.clear(kind, namespace, selector).await,
            Step::Get(place) => self.get(place).await,
            Step::List(kind, scope, selector) => self.list(kind, scope, selector).await,
            Step::StartPages(kind, scope, selector, limit) => {
                self.start_pages(kind, scope, selector, limit).await
            }
            Step::NextPage(index) => self.next_page(index).await,
            Step::Watch(kind, scope, selector, begin) => self.watch(kind, scope, selector, begin).await,
            Step::ReadWatch(index) => drop(self.watches.get_mut(index).map(Watching::read_ready)),
            Step::Compact(ago) => self.compact(ago).await,
            Step::CreateNamespace(name) => self.create_namespace(name).await,
            Step::DeleteNamespace(name) => self.delete_namespace(name).await,
            Step::FinishNamespace(name) => self.finish_namespace(name).await,
        }
        assert_eq!(
            self.server.store().revision(),
            self.world.revision,
            "a write takes one revision: {step:?}"
        );
    }

    /// Sends a write and compares answer and effect.
    async fn write(&mut self, place: Place, ask: Ask, verdict: Verdict, created: bool) {
        let answer = self.server.ask(ask).await;
        let effect = match verdict {
            Err((code, reason)) => {
                return assert_eq!((answer.code, answer.refusal().1), (code, reason), "{}", answer.text);
            }
            Ok(effect) => effect,
        };
        assert_eq!(answer.code, if created { 201 } else { 200 }, "{}", answer.text);
        let uid = answer.body["metadata"]["uid"].as_str().map(str::to_owned);
        self.world.commit(place, &effect, uid);
        if effect != Effect::Gone {
            let expected = self.world.objects.get(&place).cloned();
            assert_eq!(Thing::read(&answer.body), (place, expected.expect("it was just written")));
        }
    }

    async fn create(&mut self, place: Place, wish: &Wish) {
        let ask = Ask::post(&collection(place.kind, Some(place.namespace)), World::body(place, wish, None));
        self.write(place, ask, self.world.create(place, wish), true).await;
    }

    fn version(&self, place: Place, known: Known) -> Option<String> {
        let current = self.world.objects.get(&place).map_or(1, |thing| thing.revision);
        match known {
            Known::Nothing => None,
            Known::Current => Some(current.to_string()),
            Known::Stale => Some((current - 1).to_string()),
        }
    }

    async fn update(&mut self, place: Place, wish: &Wish, known: Known) {
        let body = World::body(place, wish, self.version(place, known).as_deref());
        let verdict = self.world.change(place, wish, known, true);
        self.write(place, Ask::put(&path(place), body), verdict, false).await;
    }

    async fn merge(&mut self, place: Place, wish: &Wish, known: Known) {
        let mut body = World::body(place, wish, self.version(place, known).as_deref());
        body["metadata"]["labels"] = json!({ "l": wish.label });
        let verdict = self.world.change(place, wish, known, false);
        self.write(place, Ask::merge(&path(place), body), verdict, false).await;
    }

    async fn json_patch(&mut self, place: Place, value: u8, fits: bool) {
        let field = if place.kind == Kind::Map { "/data/value" } else { "/spec/value" };
        let name = if fits { place.name } else { "another" };
        let patch = json!([
            { "op": "replace", "path": field, "value": value.to_string() },
            { "op": "test", "path": "/metadata/name", "value": name },
        ]);
        let verdict = self.world.set_value(place, value, fits);
        self.write(place, Ask::patch("json", &path(place), patch), verdict, false).await;
    }

    async fn delete(&mut self, place: Place, condition: Condition, dry_run: bool) {
        let current = self.world.objects.get(&place);
        let (uid, revision) = current.map(|thing| (thing.uid.clone(), thing.revision)).unwrap_or_default();
        let mut body = match condition {
            Condition::None => json!({}),
            Condition::Uid(right) => {
                json!({ "preconditions": { "uid": if right { &uid } else { "other" } } })
            }
            Condition::Version(right) => {
                let version = if right { revision } else { revision + 1 };
                json!({ "preconditions": { "resourceVersion": version.to_string() } })
            }
        };
        if dry_run {
            body["dryRun"] = json!(["All"]);
        }
        let verdict = self.world.delete(place, condition);
        let ask = Ask::delete(&path(place)).with(body);
        match (dry_run, verdict) {
            (true, Ok(_)) => assert_eq!(self.server.ask(ask).await.code, 200),
            (_, verdict) => self.write(place, ask, verdict, false).await,
        }
    }

    async fn clear(&mut self, kind: Kind, namespace: &'static str, selector: &'static str) {
        let ask = Ask::delete(&format!("{}?labelSelector={selector}", collection(kind, Some(namespace))));
        self.server.ask(ask).await.expect(200);
        for (place, _) in self.selected(self.world.revision, kind, Some(namespace), selector) {
            let effect = self.world.delete(place, Condition::None).expect("it is there");
            self.world.commit(place, &effect, None);
        }
    }

    fn selected(
        &self,
        revision: u64,
        kind: Kind,
        scope: Option<&str>,
        selector: &str,
    ) -> Vec<(Place, Thing)> {
        let objects = self.world.at(revision).into_iter();
        objects.filter(|(place, thing)| place.is_in(kind, scope) && thing.matches(selector)).collect()
    }

    async fn get(&mut self, place: Place) {
        let answer = self.server.ask(Ask::get(&path(place))).await;
        match self.world.objects.get(&place) {
            None => assert_eq!((answer.code, answer.refusal().1), (404, "NotFound")),
            Some(thing) => assert_eq!(Thing::read(&answer.expect(200)), (place, thing.clone())),
        }
    }

    async fn list(&mut self, kind: Kind, scope: Option<&'static str>, selector: &'static str) {
        let ask = Ask::get(&format!("{}?labelSelector={selector}", collection(kind, scope)));
        let (items, revision, token) = read_list(&self.server.ask(ask).await.expect(200));
        assert_eq!((revision, token), (self.world.revision, None));
        assert_eq!(items, self.selected(revision, kind, scope, selector));
    }

    async fn start_pages(
        &mut self,
        kind: Kind,
        scope: Option<&'static str>,
        selector: &'static str,
        limit: usize,
    ) {
        let ask = Ask::get(&format!("{}?labelSelector={selector}&limit={limit}", collection(kind, scope)));
        let (items, revision, token) = read_list(&self.server.ask(ask).await.expect(200));
        assert_eq!(revision, self.world.revision);
        let mut rest = self.selected(revision, kind, scope, selector);
        assert_eq!(items, rest.drain(..limit.min(rest.len())).collect::<Vec<_>>());
        match token {
            None => assert!(rest.is_empty(), "a list ends when everything was shown"),
            Some(token) => self.pages.push(Pages { kind, scope, selector, limit, token, revision, rest }),
        }
    }

    async fn next_page(&mut self, index: usize) {
        if index >= self.pages.len() {
            return;
        }
        let mut pages = self.pages.remove(index);
        let (collection, selector) = (collection(pages.kind, pages.scope), pages.selector);
        let query = format!("labelSelector={selector}&limit={}&continue={}", pages.limit, pages.token);
        let answer = self.server.ask(Ask::get(&format!("{collection}?{query}"))).await;
        if pages.revision < self.world.compacted {
            return assert_eq!((answer.code, answer.refusal().1), (410, "Expired"));
        }
        let (items, revision, token) = read_list(&answer.expect(200));
        assert_eq!(revision, pages.revision, "all pages show one moment");
        let shown = pages.limit.min(pages.rest.len());
        assert_eq!(items, pages.rest.drain(..shown).collect::<Vec<_>>());
        match token {
            None => assert!(pages.rest.is_empty(), "a list ends when everything was shown"),
            Some(token) => self.pages.push(Pages { token, ..pages }),
        }
    }

    async fn watch(&mut self, kind: Kind, scope: Option<&'static str>, selector: &'static str, begin: Begin) {
        let start = match begin {
            Begin::State { any: false } => String::new(),
            Begin::State { any: true } => "&resourceVersion=0".to_owned(),
            Begin::Initial => "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
            Begin::Ago(_) => format!("&resourceVersion={}", Watching::start(&self.world, begin)),
        };
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds=5&labelSelector={selector}{start}",
            collection(kind, scope)
        );
        let response = self.server.open(Ask::get(&path)).await;
        assert_eq!(response.status(), 200);
        self.watches.push(Watching::new(&self.world, kind, scope, selector, begin, response.into_body()));
    }

    async fn compact(&mut self, ago: u64) {
        let revision = self.world.revision - ago.min(self.world.revision);
        if revision > self.world.compacted {
            self.server.store().compact(revision).await.expect("memory can be compacted");
            self.world.compacted = revision;
        }
    }

    async fn create_namespace(&mut self, name: &'static str) {
        let answer =
            self.server.ask(Ask::post("/api/v1/namespaces", json!({ "metadata": { "name": name } }))).await;
        match self.world.namespaces.contains_key(name) {
            true => assert_eq!((answer.code, answer.refusal().1), (409, "AlreadyExists")),
            false => {
                answer.expect(201);
                self.world.namespaces.insert(name, false);
                self.world.revision += 1;
            }
        }
    }

    async fn delete_namespace(&mut self, name: &'static str) {
        let answer = self.server.ask(Ask::delete(&format!("/api/v1/namespaces/{name}"))).await;
        match self.world.namespaces.get_mut(name) {
            None => assert_eq!((answer.code, answer.refusal().1), (404, "NotFound")),
            Some(terminating) => {
                assert_eq!(answer.expect(200)["status"]["phase"], "Terminating");
                self.world.revision += u64::from(!std::mem::replace(terminating, true));
            }
        }
    }

    /// What the namespace controller does: empties it, and lets it go when it is empty.
    async fn finish_namespace(&mut self, name: &'static str) {
        if self.world.namespaces.get(name) != Some(&true) {
            return;
        }
        self.clear(Kind::Map, name, "").await;
        self.clear(Kind::Widget, name, "").await;
        if self.world.objects.keys().any(|place| place.namespace == name) {
            return;
        }
        let path = format!("/api/v1/namespaces/{name}");
        let mut namespace = self.server.ask(Ask::get(&path)).await.expect(200);
        namespace["spec"]["finalizers"] = json!([]);
        self.server.ask(Ask::put(&format!("{path}/finalize"), namespace)).await.expect(200);
        assert_eq!(self.server.ask(Ask::get(&path)).await.code, 404);
        self.world.namespaces.remove(name);
        self.world.revision += 1;
    }

    async fn finish(mut self) {
        for kind in [Kind::Map, Kind::Widget] {
            self.list(kind, None, "").await;
        }
        for watching in self.watches {
            watching.check(&self.world).await;
        }
    }
}

fn read_list(list: &Value) -> (Vec<(Place, Thing)>, u64, Option<String>) {
    let metadata = &list["metadata"];
    let revision = metadata["resourceVersion"].as_str().expect("a version").parse().expect("a number");
    let items = list["items"].as_array().expect("items").iter().map(|item| {
        let mut item = item.clone();
        // Items of a list of a built-in kind may leave out what they are.
        if item["kind"].is_null() {
            item["kind"] = list["kind"].as_str().expect("a kind").trim_end_matches("List").into();
        }
        Thing::read(&item)
    });
    (items.collect(), revision, metadata["continue"].as_str().map(str::to_owned))
}

fn check(steps: &[Step]) {
    // The clock is paused while any task can run, so watches end as soon as all events are delivered.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let mut run = Run::new().await;
        for step in steps {
            run.take(step).await;
        }
        run.finish().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_server_does_what_the_model_does(steps in prop::collection::vec(step(), 1..80)) {
        check(&steps);
    }
}
