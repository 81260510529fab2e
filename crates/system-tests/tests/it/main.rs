//! The whole system, as its users meet it.

#[cfg(test)]
mod browser;
#[cfg(test)]
mod deletion;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod journey;
#[cfg(test)]
mod revocation;
#[cfg(test)]
mod settings_page;
#[cfg(test)]
mod world;
