//! Requests whose callers wait for the end of a task.

use std::time::Duration;

use actix_web::ResponseError as _;
use bytes::Bytes;
use http::Response;
use http_kit::{Problem, Query, waited_for_caller};
use hyper::body::Incoming;
use tokio::time::{Instant, sleep};
use values::{FromText as _, TaskId};

use super::bearer::Bearer;
use super::{Forwarding, in_time};
use crate::limits::concurrency::refusal;
use crate::waiting::Place;

/// The header in which the service says for how many seconds the caller may wait, because the task is pending.
const MAY_WAIT: &str = "x-may-wait";

/// The pause before a caller asks again that could not be answered.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

impl Forwarding<'_> {
    /// The place of the caller, if it wants to wait for the end of a task.
    pub(super) fn place_to_wait(self) -> Result<Option<Place>, Problem> {
        let query = self.request.uri().query().filter(|_| self.route.waits);
        let wants = query.is_some_and(|query| Query::parse(query).first("wait").is_some());
        let task = self.request.match_info().get("id").filter(|_| wants);
        let Some(task) = task.and_then(|id| TaskId::from_text(id).ok()) else {
            return Ok(None);
        };
        let (waiting, client) = (&self.asking.state.waiting, self.asking.client.address);
        waiting.enter(client, task).map(Some)
    }

    /// The response to a caller that waits: when the task is no longer pending, or the wait is over. What the caller may see
    /// is judged by the last request.
    pub(super) async fn send_when_ended(
        self,
        bearer: &Bearer,
        mut place: Place,
    ) -> Result<Response<Incoming>, Problem> {
        // The requests of others must leave time for this one, and it waits for its turn when many come in the same moment.
        self.asking.state.turns.record(self.asking.client.address);
        let turn = in_time(place.turn()).await?;
        let mut response = self.send(bearer, Bytes::new()).await?;
        drop(turn);
        let Some(wait) = may_wait(&response) else {
            return Ok(response);
        };
        let (asked, until) = (Instant::now(), place.end(wait));
        if place.is_over(until) || !server::set_aside() {
            return Ok(response);
        }
        loop {
            // The connection to the service is free for others meanwhile.
            drop(response);
            place.until_ended(until).await;
            let share = place.answer_share().await.map_err(refusal)?;
            response = self.answer(&place, until).await?;
            if may_wait(&response).is_none() || place.is_over(until) {
                waited_for_caller(self.request, asked.elapsed());
                server::keep_until_closed((place, share));
                return Ok(response);
            }
        }
    }

    /// Asks again. While the service is away, a caller that may still wait does.
    async fn answer(self, place: &Place, until: Instant) -> Result<Response<Incoming>, Problem> {
        loop {
            let turn = place.turn().await.map_err(refusal)?;
            let bearer = self.bearer().await?;
            let result = self.send(&bearer, Bytes::new()).await;
            drop(turn);
            let failed = match &result {
                Ok(response) => response.status().is_server_error(),
                Err(problem) => problem.status_code().is_server_error(),
            };
            if !failed || place.is_over(until) {
                return result;
            }
            sleep(RETRY_PAUSE).await;
        }
    }
}

fn may_wait(response: &Response<Incoming>) -> Option<Duration> {
    let seconds = response.headers().get(MAY_WAIT)?.to_str().ok()?;
    seconds.parse().ok().map(Duration::from_secs)
}
