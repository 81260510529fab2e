use actix_web::http::StatusCode;
use http_kit::{Problem, problem_responses};

use crate::tasks::TaskError;

/// Why an operation on deliveries failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeliveryError {
    /// The delivery does not exist, or the caller may not know of it.
    #[error("the delivery does not exist")]
    NotFound,
    /// It was sent or has failed.
    #[error("the delivery has ended")]
    Ended,
    /// As many hosts are paused as may be.
    #[error("too many hosts are paused")]
    TooManyPausedHosts,
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl From<DeliveryError> for Problem {
    fn from(error: DeliveryError) -> Self {
        match error {
            DeliveryError::NotFound => Self::not_found("delivery"),
            DeliveryError::Ended => Self::new(
                StatusCode::CONFLICT,
                "delivery-ended",
                "The delivery was sent or has failed, so there is nothing to cancel.",
            ),
            DeliveryError::TooManyPausedHosts => Self::new(
                StatusCode::CONFLICT,
                "too-many-paused-hosts",
                "1,000 hosts are paused already. Resume one of them first.",
            ),
            DeliveryError::Task(error) => error.into(),
            DeliveryError::Database(error) => error.into(),
        }
    }
}

problem_responses! {
    /// Problems of operations on one delivery.
    pub(crate) NoDelivery {
        DeliveryError::NotFound => "The delivery does not exist or is not visible to the caller.",
    }
    /// Problems of pausing a host.
    pub(crate) TooManyPausedHosts {
        DeliveryError::TooManyPausedHosts => "1,000 hosts are paused already.",
    }
    /// Problems of cancelling one delivery.
    pub(crate) NoPendingDelivery: NoDelivery {
        DeliveryError::Ended => "The delivery was sent or has failed.",
    }
}
