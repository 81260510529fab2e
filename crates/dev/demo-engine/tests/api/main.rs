//! The demo engine over real HTTP.

#[cfg(test)]
mod client;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod control;
#[cfg(test)]
mod erasure;
#[cfg(test)]
mod process;
#[cfg(test)]
mod receivers;
