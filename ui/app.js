/**
 * The page: a bar that stays, and one view at a time below it. A view is a module that exports
 *
 *   open(container, data, route, actions) -> { refresh(data), follow?(route), repaint?(), close?() }
 *
 * A view fetches through api.js, keeps its state in the address through router.js, and changes nothing outside its container.
 */
import { ask, clearCache, subscribe } from './api.js';
import { copyButton } from './clipboard.js';
import { announce, el, plain, swap } from './dom.js';
import { count, file } from './format.js';
import { listenToKeys, toggleHelp } from './help.js';
import * as overview from './overview.js';
import { handOver, prepare } from './perfetto.js';
import { here, href } from './router.js';
import { SEVERITIES, fetchRun } from './run.js';
import { initTheme } from './theme.js';

const VIEWS = [
  { view: 'overview', label: 'Overview', load: async () => overview },
  { view: 'timeline', label: 'Timeline', load: () => import('./timeline.js') },
  { view: 'handles', label: 'Handles', load: () => import('./handles.js') },
  { view: 'calls', label: 'Calls', load: () => import('./calls.js') },
  { view: 'finding', within: 'overview', load: () => import('./finding.js') },
  { view: 'handle', within: 'handles', load: () => import('./handle.js') },
];

/** Up to this many lifetimes are loaded before the timeline is opened. */
const AHEAD = 300_000;

const main = /** @type {HTMLElement} */ (document.getElementById('main'));
const problem = /** @type {HTMLElement} */ (document.getElementById('problem'));
const perfetto = /** @type {HTMLButtonElement} */ (document.getElementById('perfetto'));
const gone = /** @type {HTMLElement} */ (document.getElementById('gone'));
const live = /** @type {HTMLElement} */ (document.getElementById('live'));

/** @type {import('./run.js').RunData | null} */
let data = null;
/** @type {{view: string, shown: any} | null} */
let current = null;
/** Counts calls of `show`: a view that loads slowly must not replace one that was opened after it. */
let opened = 0;
let connected = true;

/** @param {unknown} error */
function showError(error) {
  problem.textContent = plain(error instanceof Error ? error.message : error);
  problem.hidden = false;
}

/** What views may ask of the page. */
const actions = {
  showError,
  /** @param {number} [at]  nanoseconds of the run */
  perfetto(at) {
    if (data) handOver(data.run, at).catch(showError);
  },
};

function updateBar() {
  const { view } = here();
  const at = VIEWS.find((entry) => entry.view === view)?.within ?? view;
  const tabs = VIEWS.filter((entry) => entry.label);
  const list = /** @type {HTMLElement} */ (document.getElementById('views'));
  if (list.childElementCount === 0) {
    list.append(...tabs.map((tab) => el('li', {}, el('a', { href: href(tab.view), 'data-view': tab.view }, tab.label))));
  }
  for (const link of list.querySelectorAll('a')) {
    if (link.dataset.view === at) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (!data) return;
  const { run } = data;
  const title = /** @type {HTMLElement} */ (document.getElementById('title'));
  const name = run.title.split(', ').map(file).join(', ');
  title.textContent = plain(name);
  title.title = plain(run.title);
  const errors = data.check.findings.filter((/** @type {any} */ found) => !found.excuse && found.severity !== 'note');
  const worst = SEVERITIES.find((severity) => errors.some((/** @type {any} */ found) => found.severity === severity));
  const number = errors.filter((/** @type {any} */ found) => found.severity === worst).length;
  document.title = plain(`${worst ? `${count(number, worst)} · ` : ''}${name} · urscope`);
  showGone();
  const text = !connected ? 'not connected' : run.running ? 'running' : 'ended';
  if (live.textContent !== text) live.textContent = text;
  live.className = connected && run.running ? 'on' : '';
  perfetto.disabled = false;
  perfetto.hidden = run.perfetto === null;
  live.hidden = run.perfetto === null;
  if (run.perfetto) {
    perfetto.title = run.perfetto.local
      ? 'in the local copy of the Perfetto UI'
      : `at ${run.perfetto.url}; the trace stays in your browser`;
  }
}

/** Says that the server has ended, and how to start it again. What was loaded stays. */
function showGone() {
  if (gone.hidden === connected) return;
  gone.hidden = connected;
  if (connected || !data) return;
  const { again } = data.run;
  swap(
    gone,
    'urscope view has ended, or the connection to its host is lost. This page keeps what it has loaded. To see the rest, start it again: ',
    el('code', {}, again),
    ' ',
    copyButton('Copy the command', () => again),
  );
}

/** Loads what the other views need, so that they can be shown when the server has ended. */
async function loadAhead() {
  await Promise.all(VIEWS.map((entry) => entry.load()));
  if (!data || data.run.running) return;
  await ask('holders');
  const { fetchLifetimes } = await import('./lifetimes.js');
  if (data.run.lives <= AHEAD) await fetchLifetimes(data.run, () => {});
  const { load } = await import('./calls.js');
  await load(new URLSearchParams());
  for (const [finding, { rule, other }] of data.check.findings.slice(0, 50).entries()) {
    await ask('rule', { name: rule });
    await ask('source', { finding, there: 0 });
    if (other) await ask('source', { finding, there: 1 });
  }
}

async function show() {
  const mine = ++opened;
  const route = here();
  updateBar();
  if (!data) return;
  if (current?.view === route.view && current.shown.follow) {
    current.shown.follow(route);
    return;
  }
  const entry = VIEWS.find((entry) => entry.view === route.view);
  current?.shown.close?.();
  current = null;
  main.setAttribute('aria-busy', 'true');
  try {
    if (!entry) throw new Error(`this page has no view '${route.view}'`);
    const module = await entry.load();
    if (mine !== opened) return;
    main.className = `view-${route.view}`;
    main.replaceChildren();
    current = { view: route.view, shown: module.open(main, data, route, actions) };
  } catch (error) {
    main.replaceChildren(
      el('p', { class: 'empty' }, 'There is nothing to show here. ', el('a', { href: href('overview') }, 'Overview')),
    );
    showError(error);
  }
  main.setAttribute('aria-busy', 'false');
  dispatchEvent(new Event('urscope-shown'));
}

/** Fetches everything again after the run has grown. Selection, zoom and open sections stay. */
async function reload() {
  clearCache();
  try {
    data = await fetchRun();
    problem.hidden = !data.run.error;
    if (data.run.error) showError(data.run.error);
    updateBar();
    current?.shown.refresh(data);
  } catch (error) {
    showError(error);
  }
}

addEventListener('hashchange', () => {
  problem.hidden = !data?.run.error;
  const before = current?.view;
  show().then(() => {
    // A new view is read from its beginning, also by a screen reader.
    if (current?.view === before) return;
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
    announce(`${main.querySelector('h1')?.textContent ?? ''}`);
  });
});
// Going back within one view fires no hashchange, because pushState made the entry. This fires.
addEventListener('popstate', () => show());

document.querySelector('.skip')?.addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
document.getElementById('help')?.addEventListener('click', toggleHelp);
listenToKeys();
perfetto.addEventListener('click', () => actions.perfetto());
initTheme(/** @type {HTMLButtonElement} */ (document.getElementById('theme')), () => current?.shown.repaint?.());

/** Reloads run one after the other. However many changes arrive during one, one more follows. */
let reloading = false;
let again = false;
async function changed() {
  again = true;
  if (reloading) return;
  reloading = true;
  while (again) {
    again = false;
    await reload();
  }
  reloading = false;
}

try {
  data = await fetchRun();
  if (data.run.error) showError(data.run.error);
  await show();
  performance.mark('urscope-filled');
  subscribe(
    (news) => {
      if (data && (news.generation !== data.run.generation || news.running !== data.run.running)) changed();
    },
    (is) => {
      connected = is;
      updateBar();
    },
  );
  // What fails here is asked for again when it is needed.
  if (data.run.perfetto) {
    (globalThis.requestIdleCallback ?? setTimeout)(() => loadAhead().catch(() => {}));
    (globalThis.requestIdleCallback ?? setTimeout)(() => data && prepare(data.run));
  }
} catch (error) {
  showError(error);
  main.setAttribute('aria-busy', 'false');
  main.replaceChildren(el('p', { class: 'empty' }, 'The run cannot be shown.'));
}
