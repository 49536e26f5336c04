//! How long the owners of fields take to write: run with `--release`, prints microseconds per write.

use std::hint::black_box;
use std::io::Write;
use std::sync::LazyLock;
use std::time::Instant;

use apiserver::apply::{WriteContext, server_side_apply, track_update};
use apiserver::schema::Schema;
use serde_json::{Value, json};

fn main() -> std::io::Result<()> {
    let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let config_map = json!({ "type": "object", "properties": { "data": map } });
    let recorded: Value = serde_json::from_str(include_str!("../testdata/apply.json"))?;
    measure("ConfigMap", &Schema::from_openapi(&config_map), config_map_of(10, 180))?;
    measure("Deployment", &Schema::from_openapi(&recorded["schemas"]["Deployment"]), deployment_of(8))
}

fn config_map_of(keys: usize, value_bytes: usize) -> Value {
    let data: serde_json::Map<String, Value> =
        (0..keys).map(|key| (format!("key-{key}"), "x".repeat(value_bytes).into())).collect();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "settings", "namespace": "default", "labels": { "app": "settings" } },
        "data": data,
    })
}

fn deployment_of(containers: usize) -> Value {
    let container = |index: usize| {
        json!({
            "name": format!("container-{index}"),
            "image": "registry.example.com/team/application:1.2.3",
            "imagePullPolicy": "IfNotPresent",
            "args": ["--verbose", "--port=8080"],
            "env": [{ "name": "MODE", "value": "production" }, { "name": "LEVEL", "value": "info" }],
            "ports": [{ "containerPort": 8080 + index, "protocol": "TCP" }],
            "resources": { "limits": { "cpu": "1", "memory": "1Gi" }, "requests": { "cpu": "1" } },
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "volumeMounts": [{ "name": "v", "mountPath": "/data" }],
        })
    };
    let containers: Vec<Value> = (0..containers).map(container).collect();
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "nginx", "namespace": "default", "labels": { "app": "nginx" } },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": "nginx" } },
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } },
            "template": {
                "metadata": { "labels": { "app": "nginx" } },
                "spec": { "containers": containers, "volumes": [{ "name": "v", "emptyDir": {} }] },
            },
        },
    })
}

fn measure(kind: &str, schema: &Schema, object: Value) -> std::io::Result<()> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let write = WriteContext {
        manager: "bench",
        api_version,
        kind,
        subresource: "",
        now: jiff::Timestamp::UNIX_EPOCH,
        schema,
        builtin: true,
        reset: &[&["status"]],
    };
    let mut created = object.clone();
    track_update(None, &mut created, &write);
    let mut changed = created.clone();
    changed["metadata"]["labels"]["app"] = "other".into();
    let report = |what: &str, micros: f64| {
        writeln!(std::io::stdout(), "{kind} of {} bytes, {what}: {micros:.2} us", object.to_string().len())
    };
    report("clone alone", timed(&object, |_| {}))?;
    report("create", timed(&object, |new| track_update(None, new, &write)))?;
    report("update of nothing", timed(&created, |new| track_update(Some(&created), new, &write)))?;
    report("update of a label", timed(&changed, |new| track_update(Some(&created), new, &write)))?;
    let applied = server_side_apply(None, &object, false, &write).map_err(std::io::Error::other)?;
    report("first apply", timed(&object, |new| drop(server_side_apply(None, new, false, &write))))?;
    report("same apply", timed(&object, |new| drop(server_side_apply(Some(&applied), new, false, &write))))
}

/// Microseconds of processor time per run, each on its own copy; the copy is part of the time.
fn timed(object: &Value, mut run: impl FnMut(&mut Value)) -> f64 {
    const RUNS: u32 = 20_000;
    let start = processor_seconds();
    for _ in 0..RUNS {
        let mut copy = object.clone();
        run(&mut copy);
        black_box(copy);
    }
    (processor_seconds() - start) * 1e6 / f64::from(RUNS)
}

/// What this thread has had of a processor, so that a busy machine does not show; the clock where the
/// system does not say.
fn processor_seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = spent.as_deref().and_then(|spent| spent.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| START.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}
