//! Test-only support: real clients, restarts, faults and house rules.
