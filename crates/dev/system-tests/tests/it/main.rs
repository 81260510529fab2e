//! The whole system, as its users meet it.

#![expect(clippy::too_many_lines, reason = "a test tells its story in one go")]

#[cfg(test)]
mod browser;
#[cfg(test)]
mod compose;
#[cfg(test)]
mod deletion;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod hostile_requests;
#[cfg(test)]
mod journey;
#[cfg(test)]
mod key_rotation;
#[cfg(test)]
mod naughty_strings;
#[cfg(test)]
mod revocation;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod settings_page;
