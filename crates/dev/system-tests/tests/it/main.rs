//! Tests of the whole system through the gateway.

#![expect(
    clippy::too_many_lines,
    reason = "tests and tables of cases may be longer than functions"
)]

#[cfg(test)]
mod api_keys;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod command_line;
#[cfg(test)]
mod compose;
#[cfg(test)]
mod deletion;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod firefox_browser;
#[cfg(test)]
mod guides;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod hostile_requests;
#[cfg(test)]
mod journey;
#[cfg(test)]
mod key_rotation;
#[cfg(test)]
mod kubernetes;
#[cfg(test)]
mod links;
#[cfg(test)]
mod loaded;
#[cfg(test)]
mod metrics_page;
#[cfg(test)]
mod naughty_strings;
#[cfg(test)]
mod observability;
#[cfg(test)]
mod registrants;
#[cfg(test)]
mod revocation;
#[cfg(test)]
mod screenshots;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod settings_page;
#[cfg(test)]
mod task_mails;
#[cfg(test)]
mod trace_collector;
#[cfg(test)]
mod traces;
#[cfg(test)]
mod waiting;
#[cfg(test)]
mod webdriver;
