/**
 * Hands the run to Perfetto, as its documentation has it: a window is opened by the click, asked until it answers, and given
 * the timeline. The trace goes from this page to that window and nowhere else.
 */

const ASK_EVERY = 100; // Milliseconds.
const ASK_FOR = 60_000;
/** Until so many calls the timeline is fetched before the click; a bigger one is fetched when it is wanted. */
const SMALL = 50_000;
/** A moment is shown with so much around it, in nanoseconds. */
const AROUND = 2_000_000;

/** @type {{generation: number, buffer: Promise<ArrayBuffer>} | null} */
let fetched = null;

/** @param {number} generation */
function timeline(generation) {
  if (fetched?.generation !== generation) {
    const buffer = fetch('api/timeline').then((response) => {
      if (!response.ok) throw new Error(`urscope view answered ${response.status} when the timeline was asked for`);
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
 * Fetches what a click will hand over, if that is little.
 * @param {import('./api.js').Run} run
 */
export function prepare(run) {
  if (!run.running && run.calls <= SMALL) timeline(run.generation).catch(() => {});
}

/**
 * Answers when the window is ready.
 * @param {Window} target
 * @param {string} origin
 */
function ready(target, origin) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearInterval(asking);
      removeEventListener('message', heard);
    };
    const heard = (/** @type {MessageEvent} */ event) => {
      if (event.source !== target || event.origin !== origin || event.data !== 'PONG') return;
      stop();
      resolve(undefined);
    };
    const until = performance.now() + ASK_FOR;
    const asking = setInterval(() => {
      if (target.closed || performance.now() > until) {
        stop();
        reject(new Error('Perfetto did not answer; without a network, urscope view --perfetto-ui serves a copy of it'));
      } else {
        target.postMessage('PING', origin);
      }
    }, ASK_EVERY);
    addEventListener('message', heard);
  });
}

/**
 * Opens the run in Perfetto. To be called by a click, or browsers open no window.
 * @param {import('./api.js').Run} run
 * @param {number} [at]  the moment to show, in nanoseconds of the run
 */
export async function handOver(run, at) {
  const url = new URL(run.perfetto.url, location.href);
  if (at !== undefined) {
    const sight = new URLSearchParams({ visStart: String(Math.max(0, at - AROUND)), visEnd: String(at + AROUND) });
    url.hash = `#!/?${sight}`;
  }
  const target = window.open(url.href, '_blank');
  if (!target) throw new Error('the browser opened no window; let this page open windows, and click again');
  const [buffer] = await Promise.all([timeline(run.generation), ready(target, url.origin)]);
  target.postMessage(
    { perfetto: { buffer, title: `urscope: ${run.title}`, fileName: 'urscope.json', localOnly: true } },
    url.origin,
  );
}
