//! Tests of the whole system: every process, one database, one broker, real HTTP through the gateway.
//!
//! The tests stand in `tests/it`. There is nothing here to depend on.
