//! Requests through the gateway: alone beside other proxies, then reads of the system.

mod constant;
mod reads;

use crate::context::Context;
use crate::report::Figures;

/// Measures a constant response, then a user, a task and a list, each with a token.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    constant::measure(context, figures).await?;
    reads::measure(context, figures).await
}
