//! What kube-apiserver knows of built-in kinds beyond their schema.
//! Must not know about HTTP or storage: it sees values.

pub mod names;
