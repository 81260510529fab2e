//! A small HTTP/1.1 client and receiver that need little of the processor, which they share with the system.

pub(crate) mod connection;
pub(crate) mod load;
pub(crate) mod receiver;
pub(crate) mod request;
