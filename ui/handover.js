/**
 * The page of `urscope view --perfetto`. A local copy of the Perfetto UI is opened at once, because it may fetch the timeline
 * by itself. The public UI is opened by a click, because browsers open a window only on a click.
 */
import { ask } from './api.js';
import { plain } from './dom.js';
import { handOver, prepare } from './perfetto.js';

const status = /** @type {HTMLElement} */ (document.getElementById('status'));
const button = /** @type {HTMLButtonElement} */ (document.getElementById('perfetto'));
const show = (/** @type {unknown} */ text) => {
  status.textContent = plain(text instanceof Error ? text.message : text);
};

try {
  const run = await ask('run');
  button.addEventListener('click', () => handOver(run).then(() => show('The run is open in Perfetto.'), show));
  button.disabled = false;
  button.focus();
  if (run.perfetto.local) {
    show('Opening the local copy of Perfetto…');
    location.replace(`${run.perfetto.url}#!/?url=${encodeURIComponent(`${run.perfetto.url}urscope-timeline.json`)}`);
  } else {
    prepare(run);
    show(`The button opens the run at ${run.perfetto.url}. The trace stays in your browser.`);
  }
} catch (error) {
  show(error);
}
