//! Behaviour as stories: the proposals' cases and the rules, written in a small step language and folded over the pure
//! functions. Each story is run plainly, with a restart after every step, by the index alone, and with everything
//! inside one second.

mod batch;
mod lazy;
mod plans;
mod preemption;
mod properties;
mod static_policy;
mod story;
mod suspension;
mod words;
