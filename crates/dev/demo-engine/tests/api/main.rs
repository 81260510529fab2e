//! Tests of the demo engine over HTTP.

#[cfg(test)]
mod contract;
#[cfg(test)]
mod control;
#[cfg(test)]
mod erasure;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod process;
#[cfg(test)]
mod receivers;
