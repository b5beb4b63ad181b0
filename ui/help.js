/**
 * The keys of the page: `?` shows them, `/` goes to the search. The keys of the timeline are in input.js.
 */
import { el, root } from './dom.js';
import { KEYS } from './input.js';
import { href } from './router.js';

const EVERYWHERE = [
  ['/', 'search'],
  ['?', 'this help'],
  ['1 2 3 4', 'overview, timeline, handles, calls'],
];

/** The keys of a list, each in a frame. @param {string[][]} keys */
export const keyList = (keys) =>
  el(
    'dl',
    { class: 'keys' },
    keys.map(([names, does]) => [
      el(
        'dt',
        {},
        names.split(' ').map((name) => (name === '+' && names.includes(' + ') ? '+' : el('kbd', {}, name))),
      ),
      el('dd', {}, does),
    ]),
  );

/** @type {HTMLDialogElement | null} */
let dialog = null;

/** Opens or closes the help. */
export function toggleHelp() {
  if (!dialog) {
    const close = () => dialog?.close();
    dialog = root().appendChild(
      el(
        'dialog',
        { class: 'help', 'aria-label': 'Keys' },
        el('h2', {}, 'Keys'),
        keyList(EVERYWHERE),
        el('h3', {}, 'On the timeline'),
        keyList(KEYS),
        el('h3', {}, 'With the pointer, on the timeline'),
        keyList([
          ['drag', 'zoom to what is marked'],
          ['Shift + drag', 'move'],
          ['wheel', 'scroll the lanes'],
          ['Ctrl + wheel', 'zoom'],
          ['click', 'on a mark: go there; on a process: its lanes'],
          ['double-click', 'zoom to a lifetime'],
        ]),
        el('p', { class: 'links' }, el('button', { type: 'button', onclick: close }, 'Close')),
      ),
    );
  }
  if (dialog?.open) dialog.close();
  else dialog?.showModal();
}

const VIEWS = ['overview', 'timeline', 'handles', 'calls'];

/** Listens to the keys that work everywhere. */
export function listenToKeys() {
  addEventListener('keydown', (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest?.('input, select, textarea')) return;
    if (event.key === '?') toggleHelp();
    else if (dialog?.open) return;
    else if (event.key === '/') search();
    else if (VIEWS[Number(event.key) - 1]) location.hash = href(VIEWS[Number(event.key) - 1]);
    else return;
    event.preventDefault();
  });
}

/** Goes to the search field of this view, or of the table of handles. */
function search() {
  const field = () => /** @type {HTMLInputElement | null} */ (document.querySelector('main input[type="search"]'));
  const here = field();
  if (here) return here.focus();
  addEventListener('urscope-shown', () => field()?.focus(), { once: true });
  location.hash = href('handles');
}
