//! The routes of the server, and their answers.

use std::{error::Error as _, path::PathBuf, sync::Arc, time::Duration};

use axum::body::{Body, HttpBody as _};
use axum::extract::Query;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;

use super::answers::{Refusal, answer, answer_compact, printed};
use super::guard::{self, Admitted};
use super::{
    assets, events, lifetimes,
    model::{Model, OfFinding},
    overview::{Perfetto, overview},
    perfetto::TRACE,
    search,
    state::AppState,
    timeline::timeline,
};
use urscope_analyzer::questions::{self, QuestionError};
use urscope_analyzer::{Options, explain};

pub(super) async fn page(state: &Arc<AppState>, admitted: &Admitted, method: &Method) -> Response {
    let mut response = match admitted.path.strip_prefix("api/") {
        Some(name) => api(state, name, &admitted.uri, admitted.port).await.unwrap_or_else(Refusal::into_response),
        None => assets::asset(&admitted.path).map_or_else(guard::nothing, |(name, text)| {
            ([(CONTENT_TYPE, HeaderValue::from_static(assets::content_type(name)))], *text).into_response()
        }),
    };
    if let Some(length) = response.size_hint().exact() {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    if *method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    response
}

/// Serves the copy of the Perfetto UI, and the timeline, which is the only answer that the copy may read.
pub(super) async fn perfetto(state: &Arc<AppState>, admitted: Admitted) -> Response {
    let Some(copy) = state.perfetto.clone() else { return guard::nothing() };
    let name = admitted.path.trim_start_matches('/').to_owned();
    if name == TRACE {
        return timeline(state).await.into_response();
    }
    match tokio::task::spawn_blocking(move || copy.file(&name)).await {
        Ok(Ok(Some((kind, bytes)))) => ([(CONTENT_TYPE, HeaderValue::from_static(kind))], bytes).into_response(),
        Ok(Err(error)) => {
            Refusal::unavailable(format!("the copy of the Perfetto UI cannot be read: {error}")).into_response()
        }
        Ok(Ok(None)) | Err(_) => guard::nothing(),
    }
}

/// A moment of the run, in nanoseconds since its first process began.
#[derive(Deserialize)]
struct At {
    at_ns: Option<u64>,
}

/// The fingerprint or an address of a handle, or a rule.
#[derive(Deserialize)]
struct Named {
    name: String,
}

async fn api(state: &Arc<AppState>, name: &str, uri: &Uri, port: u16) -> Result<Response, Refusal> {
    match name {
        "check" => {
            let asked = Arc::clone(state);
            of_model(state, move |generation, model| {
                let mut judgement = model.judgement.clone();
                asked.sources.add_to(&mut judgement);
                Ok(answer(generation, printed(&judgement)?))
            })
            .await
        }
        "stats" => of_model(state, |generation, model| Ok(answer(generation, printed(&model.stats)?))).await,
        "holders" => {
            let (generation, model) = state.model().await?;
            match query::<At>(uri)?.at_ns.map(Duration::from_nanos) {
                None => apart(move || Ok(answer(generation, printed(&model.holders)?))).await,
                at => question(state, generation, move |paths, options| questions::holders(paths, options, at)).await,
            }
        }
        "handle" => {
            let name = questions::word(&query::<Named>(uri)?.name).map_err(Refusal::meaningless)?;
            let (generation, _) = state.model().await?;
            question(state, generation, move |paths, options| questions::handle(paths, options, name)).await
        }
        "run" => {
            let now = state.latest().await?;
            let perfetto = Perfetto::new(&state.tokens, port);
            answer_compact(now.generation, &overview(&state.subject, &now, Some(perfetto)))
        }
        "lives" => {
            let asked: lifetimes::Asked = query(uri)?;
            of_model(state, move |generation, model| answer_compact(generation, &model.part(generation, asked))).await
        }
        // The same in a form that the page reads without parsing.
        "lives.bin" => {
            let asked: lifetimes::Asked = query(uri)?;
            of_model(state, move |generation, model| {
                let packed = model.part(generation, asked).packed();
                let packed = packed.map_err(|error| Refusal::unavailable(error.to_string()))?;
                Ok(([(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"))], packed).into_response())
            })
            .await
        }
        // The lines of source around a frame of a side of a finding, or its call site, or why there are none, as an
        // answer.
        "source" => {
            let of: OfFinding = query(uri)?;
            let asked = Arc::clone(state);
            of_model(state, move |generation, model| match model.excerpt(&asked.sources, of) {
                Ok(excerpt) => answer_compact(generation, &excerpt),
                Err(none) => answer_compact(generation, &json!({ "none": none.to_string() })),
            })
            .await
        }
        "rule" => {
            let page = explain::page(&query::<Named>(uri)?.name);
            let text = page.map_err(|error| Refusal(StatusCode::NOT_FOUND, error.to_string()))?;
            answer_compact(0, &json!({ "text": text }))
        }
        "calls" => {
            let asked: search::Asked = query(uri)?;
            of_model(state, move |generation, model| answer_compact(generation, &model.page(generation, asked)?)).await
        }
        "timeline" => timeline(state).await,
        "events" => Ok(events::news(state.now.clone())),
        _ => Ok(guard::nothing()),
    }
}

/// Analyzes the traces for one question, on a thread of its own.
async fn question<A, Ask>(state: &Arc<AppState>, generation: u64, ask: Ask) -> Result<Response, Refusal>
where
    A: Serialize,
    Ask: FnOnce(&[PathBuf], &Options) -> Result<A, QuestionError> + Send + 'static,
{
    let permit = Arc::clone(&state.questions).acquire_owned().await;
    let state = Arc::clone(state);
    apart(move || {
        let _permit = permit;
        let found = ask(&state.paths()?, &state.subject.options);
        Ok(answer(generation, printed(&found.map_err(|error| Refusal::from_error(&error))?)?))
    })
    .await
}

/// Answers from the latest analysis, of that number.
async fn of_model(
    state: &AppState,
    work: impl FnOnce(u64, &Model) -> Result<Response, Refusal> + Send + 'static,
) -> Result<Response, Refusal> {
    let (generation, model) = state.model().await?;
    apart(move || work(generation, &model)).await
}

async fn apart(work: impl FnOnce() -> Result<Response, Refusal> + Send + 'static) -> Result<Response, Refusal> {
    let answered = tokio::task::spawn_blocking(|| tracing::info_span!("serving").in_scope(work)).await;
    answered.unwrap_or_else(|_| Err(Refusal::unavailable("the request failed because of an internal error")))
}

fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Refusal> {
    let asked = Query::try_from_uri(uri).map(|Query(asked)| asked);
    asked.map_err(|rejection| {
        let why = rejection.source().map_or_else(|| rejection.to_string(), ToString::to_string);
        Refusal::meaningless(format!("the query cannot be parsed: {why}"))
    })
}
