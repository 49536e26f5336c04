//! The real kubectl against the real binary. Every test has a server and a directory of its own.
//! `LONGSHORE_TEST_KUBECONFIG=…` runs the same steps against another API server instead, to compare.

use checks::kubectl::Kubectl;

mod apply;
mod change;
mod create;
mod custom;
mod delete;
mod discover;
mod get;
mod nodes;
mod policies;
mod rollout;
mod server_side;
mod validate;
mod watch;

/// kubectl on a server of its own; `None`, after saying so, where kubectl is missing.
fn kubectl() -> Option<Kubectl> {
    Kubectl::with_any_server(env!("CARGO_BIN_EXE_longshore"))
}

/// As [`kubectl`], for what kube-apiserver leaves to its controllers and our server does itself.
fn kubectl_with_controllers() -> Option<Kubectl> {
    Kubectl::with_server(env!("CARGO_BIN_EXE_longshore"))
}

/// A deployment with two labels, three replicas and one container.
const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels:
    app: web
    tier: front
spec:
  replicas: 3
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - name: nginx
        image: nginx:1.27
        ports:
        - containerPort: 80
";
