//! The REST surface from the outside: every request goes through the service that clients use.

mod access;
mod attacks;
mod audit;
mod bodies;
mod client;
mod conformance;
mod conversion;
mod custom;
mod definitions;
mod front;
mod identity;
mod latency;
mod life;
mod metadata;
mod model;
mod namespaces;
mod options;
mod owners;
mod patches;
mod paths;
mod policies;
mod rules;
mod table;
mod tenants;
mod tls;
mod webhooks;
