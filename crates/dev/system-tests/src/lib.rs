//! Tests of the whole system: every process, one database, one broker, real HTTP through the gateway.
//!
//! The tests are in `tests/it`. This library is empty.
