//! The table of kinds, and kube's own runtime on an API server that restarts.

mod kinds;
mod kube_rs;
