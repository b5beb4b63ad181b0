/**
 * The page of `urscope view --perfetto`: straight to the copy of Perfetto that is served beside us, which may fetch the
 * timeline by itself; to the public one by a click, because browsers open no window without.
 */
import { ask } from './api.js';
import { plain } from './dom.js';
import { handOver, prepare } from './perfetto.js';

const told = /** @type {HTMLElement} */ (document.getElementById('told'));
const button = /** @type {HTMLButtonElement} */ (document.getElementById('perfetto'));
const say = (/** @type {unknown} */ text) => {
  told.textContent = plain(text instanceof Error ? text.message : text);
};

try {
  const run = await ask('run');
  button.addEventListener('click', () => handOver(run).then(() => say('It is there.'), say));
  button.disabled = false;
  button.focus();
  if (run.perfetto.local) {
    say('Going to the copy of Perfetto on this machine…');
    location.replace(`${run.perfetto.url}#!/?url=${encodeURIComponent(`${run.perfetto.url}urscope-timeline.json`)}`);
  } else {
    prepare(run);
    say(`A click opens ${run.perfetto.url} and gives it the run. The trace stays in your browser.`);
  }
} catch (error) {
  say(error);
}
