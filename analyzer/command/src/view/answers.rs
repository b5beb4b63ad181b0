//! Builds responses: JSON answers, and errors that state what to do.

use axum::http::{HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use urscope_analyzer::{questions::QuestionError, report};

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The header with the number of the analysis that an answer is from.
const GENERATION: HeaderName = HeaderName::from_static("urscope-generation");

/// An error response. The text states what was expected, what was found and what to do.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) StatusCode, pub(super) String);

impl Refusal {
    /// The answer is not available at present.
    pub(super) fn unavailable(why: impl Into<String>) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, why.into())
    }

    pub(super) fn from_error(error: &QuestionError) -> Self {
        let status = match error {
            QuestionError::NoSuchHandle { .. } => StatusCode::NOT_FOUND,
            QuestionError::TooLate { .. } => StatusCode::BAD_REQUEST,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self(status, error.to_string())
    }

    pub(super) fn meaningless(why: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, why.into())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let text = report::compact(&json!({"error": self.1})).unwrap_or_default();
        (self.0, [(CONTENT_TYPE, JSON)], text).into_response()
    }
}

/// A value as JSON, byte for byte as the command prints it.
pub(super) fn printed(what: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    let mut text = Vec::new();
    report::json(what, &mut text).map_err(|error| Refusal::unavailable(error.to_string()))?;
    Ok(text)
}

/// The response with JSON of one analysis.
pub(super) fn answer(generation: u64, text: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, JSON), (GENERATION, HeaderValue::from(generation))], text).into_response()
}

/// The response with compact JSON, for a value that the command does not print.
pub(super) fn answer_compact(generation: u64, what: &impl Serialize) -> Result<Response, Refusal> {
    let text = report::compact(what).map_err(|error| Refusal::unavailable(error.to_string()))?;
    Ok(answer(generation, text))
}
