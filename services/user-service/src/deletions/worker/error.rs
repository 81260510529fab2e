use actix_web::http::StatusCode;
use http_kit::Problem;
use serde_json::Value;

use crate::calls::CallError;

/// Why a step failed. It is shown in the job's `failure`, so it contains no address and no secret.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error("the flow engine {0}")]
    Engine(CallError),
    #[error("the deletion-worker has no flow engine (FLOW_ENGINE_URL)")]
    NoEngine,
    /// The job has no steps at the engine, so the user's data there would stay.
    #[error(
        "FLOW_ENGINE_URL was not set for the user-service when the deletion was requested, but is set for the deletion-worker"
    )]
    EngineSkipped,
    #[error("the deletion takes longer than DELETE_MAX_AGE")]
    Overdue,
    #[error("the people-task service {0}")]
    PeopleTasks(CallError),
    #[error("the database failed")]
    Database(#[from] database::Error),
    #[error("this version does not know the step")]
    UnknownStep,
    #[error("internal error")]
    Panicked,
}

impl StepError {
    pub(super) fn is_retryable(&self) -> bool {
        !matches!(self, Self::EngineSkipped | Self::Overdue)
    }

    pub(super) fn problem(&self, step: &str, attempts: u32) -> Value {
        let status = match self {
            Self::Engine(_) | Self::PeopleTasks(_) => StatusCode::BAD_GATEWAY,
            Self::Overdue => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let times = if attempts == 1 { "attempt" } else { "attempts" };
        let remedy = match self {
            Self::EngineSkipped => "Delete the user again to continue.",
            _ => {
                "Start the deletion again (`POST /users/deletions/retry`) or delete the user again to continue."
            }
        };
        let detail = format!(
            "The step `{step}` failed after {attempts} {times}: {self}. What was deleted stays deleted. {remedy}"
        );
        let problem = Problem::new(status, "deletion-step-failed", detail)
            .with("step", step)
            .with("attempts", attempts);
        serde_json::to_value(problem.body()).unwrap_or_default()
    }
}
