//! The routes of the server, and their handlers.

use std::{error::Error as _, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{Extension, Path, Query, State, rejection::QueryRejection},
    http::{HeaderValue, Method, Request, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde::Deserialize;

use super::{
    answers::{Refusal, answer, answer_compact, printed},
    assets, events,
    guard::{self, Admitted},
    lifetimes,
    perfetto::TRACE,
    search,
    state::AppState,
    timeline,
};
use urscope_analyzer::{explain, questions};

/// The port in the Host header of the request.
#[derive(Clone, Copy)]
struct Port(u16);

/// Answers requests below the token of the page.
pub(super) async fn page(state: Arc<AppState>, admitted: Admitted, method: &Method) -> Response {
    let router = Router::new()
        .route("/", get(index))
        .route("/{name}", get(asset))
        .route("/api/check", get(check))
        .route("/api/stats", get(stats))
        .route("/api/holders", get(holders))
        .route("/api/handle", get(handle))
        .route("/api/run", get(run))
        .route("/api/lives", get(all_lives))
        .route("/api/lives.bin", get(packed_lives))
        .route("/api/source", get(source))
        .route("/api/rule", get(rule))
        .route("/api/calls", get(some_calls))
        .route("/api/timeline", get(whole))
        .route("/api/events", get(news))
        .fallback(async || guard::nothing())
        .with_state(state);
    let Admitted { path, query, port, .. } = admitted;
    let target = query.map_or_else(|| path.clone(), |query| format!("{path}?{query}"));
    let request = Request::builder().method(method).uri(target).extension(Port(port)).body(Body::empty());
    match request {
        Ok(request) => TowerToHyperService::new(router).call(request).await.unwrap_or_else(|never| match never {}),
        Err(_) => guard::nothing(),
    }
}

/// Serves the copy of the Perfetto UI, and the timeline, which is the only answer that the copy may read.
pub(super) async fn perfetto(state: Arc<AppState>, admitted: &Admitted) -> Response {
    let Some(copy) = state.perfetto.clone() else { return guard::nothing() };
    let name = admitted.path.trim_start_matches('/').to_owned();
    if name == TRACE {
        return timeline::timeline(state).await.into_response();
    }
    let found = tokio::task::spawn_blocking(move || copy.file(&name)).await;
    match found {
        Ok(Ok(Some((kind, bytes)))) => ([(CONTENT_TYPE, HeaderValue::from_static(kind))], bytes).into_response(),
        Ok(Err(error)) => {
            Refusal::unavailable(format!("the copy of the Perfetto UI cannot be read: {error}")).into_response()
        }
        Ok(Ok(None)) | Err(_) => guard::nothing(),
    }
}

async fn index() -> Response {
    file("")
}

async fn asset(Path(name): Path<String>) -> Response {
    file(&name)
}

fn file(name: &str) -> Response {
    let Some(asset) = assets::asset(name) else { return guard::nothing() };
    ([(CONTENT_TYPE, HeaderValue::from_static(asset.kind))], asset.text).into_response()
}

async fn check(State(state): State<Arc<AppState>>) -> Result<Response, Refusal> {
    let (generation, model) = state.model().await?;
    apart(move || Ok(answer(generation, printed(model.judgement())?))).await
}

async fn stats(State(state): State<Arc<AppState>>) -> Result<Response, Refusal> {
    let (generation, model) = state.model().await?;
    apart(move || Ok(answer(generation, printed(model.stats())?))).await
}

/// A moment of the run, in nanoseconds since its first process began.
#[derive(Deserialize)]
struct At {
    at_ns: Option<u64>,
}

async fn holders(
    State(state): State<Arc<AppState>>,
    asked: Result<Query<At>, QueryRejection>,
) -> Result<Response, Refusal> {
    let (generation, model) = state.model().await?;
    let Some(at) = query(asked)?.at_ns else {
        return apart(move || Ok(answer(generation, printed(model.holders())?))).await;
    };
    let at = Some(std::time::Duration::from_nanos(at));
    question(&state, generation, move |paths, options| questions::holders(paths, options, at)).await
}

/// The fingerprint or an address of a handle.
#[derive(Deserialize)]
struct Named {
    name: String,
}

async fn handle(
    State(state): State<Arc<AppState>>,
    asked: Result<Query<Named>, QueryRejection>,
) -> Result<Response, Refusal> {
    let name = questions::word(&query(asked)?.name).map_err(Refusal::meaningless)?;
    let (generation, _) = state.model().await?;
    question(&state, generation, move |paths, options| questions::handle(paths, options, name)).await
}

/// Analyzes the traces for one question, on a thread of its own.
async fn question<A, Ask>(state: &Arc<AppState>, generation: u64, ask: Ask) -> Result<Response, Refusal>
where
    A: serde::Serialize,
    Ask: FnOnce(&[std::path::PathBuf], &urscope_analyzer::Options) -> Result<A, questions::QuestionError>
        + Send
        + 'static,
{
    let permit = Arc::clone(&state.questions).acquire_owned().await;
    let state = Arc::clone(state);
    apart(move || {
        let _permit = permit;
        let found = ask(&state.paths()?, &state.subject.options);
        Ok(answer(generation, printed(&found.map_err(|error| Refusal::of(&error))?)?))
    })
    .await
}

async fn run(State(state): State<Arc<AppState>>, Extension(Port(port)): Extension<Port>) -> Result<Response, Refusal> {
    let now = state.latest().await?;
    answer_compact(now.generation, &super::overview::overview(&state, &now, port))
}

async fn all_lives(
    State(state): State<Arc<AppState>>,
    asked: Result<Query<lifetimes::Asked>, QueryRejection>,
) -> Result<Response, Refusal> {
    let asked = query(asked)?;
    let (generation, model) = state.model().await?;
    apart(move || answer_compact(generation, &model.part(generation, asked))).await
}

/// What `api/lives` returns, in a form that the page reads without parsing.
async fn packed_lives(
    State(state): State<Arc<AppState>>,
    asked: Result<Query<lifetimes::Asked>, QueryRejection>,
) -> Result<Response, Refusal> {
    let asked = query(asked)?;
    let (generation, model) = state.model().await?;
    let broken = |error: serde_json::Error| Refusal::unavailable(error.to_string());
    apart(move || {
        let packed = model.part(generation, asked).packed().map_err(broken)?;
        Ok(([(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"))], packed).into_response())
    })
    .await
}

/// A side of a finding: its position in the judgement, and which side.
#[derive(Deserialize)]
struct OfFinding {
    finding: usize,
    #[serde(default)]
    there: u8,
}

/// The lines of source around the call site of a side of a finding, or why there are none.
async fn source(
    State(state): State<Arc<AppState>>,
    asked: Result<Query<OfFinding>, QueryRejection>,
) -> Result<Response, Refusal> {
    let OfFinding { finding, there } = query(asked)?;
    let (generation, model) = state.model().await?;
    apart(move || {
        match model.excerpt(&state.sources, finding, there != 0) {
            Ok(excerpt) => answer_compact(generation, &excerpt),
            // That there is none is an answer, too.
            Err(none) => answer_compact(generation, &serde_json::json!({ "none": none.to_string() })),
        }
    })
    .await
}

/// The page of a rule, as `urscope explain` has it.
async fn rule(asked: Result<Query<Named>, QueryRejection>) -> Result<Response, Refusal> {
    let page = explain::page(&query(asked)?.name);
    let text = page.map_err(|error| Refusal(StatusCode::NOT_FOUND, error.to_string()))?;
    answer_compact(0, &serde_json::json!({ "text": text }))
}

async fn some_calls(
    State(state): State<Arc<AppState>>,
    asked: Result<Query<search::Asked>, QueryRejection>,
) -> Result<Response, Refusal> {
    let asked = query(asked)?;
    let (generation, model) = state.model().await?;
    apart(move || answer_compact(generation, &model.page(generation, asked)?)).await
}

/// Runs long work on a thread of its own.
async fn apart(work: impl FnOnce() -> Result<Response, Refusal> + Send + 'static) -> Result<Response, Refusal> {
    let answered = tokio::task::spawn_blocking(|| tracing::info_span!("serving").in_scope(work)).await;
    answered.unwrap_or_else(|_| Err(Refusal::unavailable("the request failed because of an internal error")))
}

async fn whole(State(state): State<Arc<AppState>>) -> Result<Response, Refusal> {
    timeline::timeline(state).await
}

async fn news(State(state): State<Arc<AppState>>) -> Response {
    events::news(state.now.clone())
}

fn query<T>(asked: Result<Query<T>, QueryRejection>) -> Result<T, Refusal> {
    let not_understood = |rejection: &QueryRejection| {
        let why = rejection.source().map_or_else(|| rejection.to_string(), ToString::to_string);
        Refusal::meaningless(format!("the query cannot be parsed: {why}"))
    };
    asked.map(|Query(asked)| asked).map_err(|rejection| not_understood(&rejection))
}
