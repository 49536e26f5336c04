//! Members through their API, on a paused clock and an in-memory store, without sleeps.

#[cfg(test)]
mod cluster;
#[cfg(test)]
mod deployments;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod many;
#[cfg(test)]
mod pods;
#[cfg(test)]
mod restarts;
