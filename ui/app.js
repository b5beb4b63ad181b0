/**
 * The page: a bar that stays, and one view at a time below it. A view is a module that exports
 *
 *   open(place, world, route, actions) -> { refresh(world), follow?(route), repaint?(), close?() }
 *
 * It asks through api.js, says what is seen through router.js, and never touches what lies outside of its place.
 */
import { follow, forget } from './api.js';
import { el, plain, say } from './dom.js';
import { file } from './format.js';
import * as overview from './overview.js';
import { handOver, prepare } from './perfetto.js';
import { here, href } from './router.js';
import { world } from './run.js';
import { themed } from './theme.js';

const VIEWS = [
  { view: 'overview', label: 'Overview', load: async () => overview },
  { view: 'timeline', label: 'Timeline', load: () => import('./timeline.js') },
  { view: 'handles', label: 'Handles', load: () => import('./handles.js') },
  { view: 'calls', label: 'Calls', load: () => import('./calls.js') },
  { view: 'finding', within: 'overview', load: () => import('./finding.js') },
  { view: 'handle', within: 'handles', load: () => import('./handle.js') },
];

const place = /** @type {HTMLElement} */ (document.getElementById('main'));
const trouble = /** @type {HTMLElement} */ (document.getElementById('trouble'));
const perfetto = /** @type {HTMLButtonElement} */ (document.getElementById('perfetto'));
const live = /** @type {HTMLElement} */ (document.getElementById('live'));

/** @type {import('./run.js').World | null} */
let now = null;
/** @type {{view: string, shown: any} | null} */
let current = null;
let turn = 0;
let connected = true;

/** @param {unknown} error */
function complain(error) {
  trouble.textContent = plain(error instanceof Error ? error.message : error);
  trouble.hidden = false;
}

/** What views may ask of the page. */
const actions = {
  complain,
  /** @param {number} [at] */
  perfetto(at) {
    if (now) handOver(now.run, at).catch(complain);
  },
};

function bar() {
  const { view } = here();
  const at = VIEWS.find((known) => known.view === view)?.within ?? view;
  const tabs = VIEWS.filter((known) => known.label);
  const list = /** @type {HTMLElement} */ (document.getElementById('views'));
  if (list.childElementCount === 0) {
    list.append(...tabs.map((tab) => el('li', {}, el('a', { href: href(tab.view), 'data-view': tab.view }, tab.label))));
  }
  for (const link of list.querySelectorAll('a')) {
    if (link.dataset.view === at) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (!now) return;
  const { run } = now;
  const title = /** @type {HTMLElement} */ (document.getElementById('title'));
  const name = run.title.split(', ').map(file).join(', ');
  title.textContent = plain(name);
  title.title = plain(run.title);
  document.title = plain(`${name} · urscope`);
  const text = !connected ? 'not connected' : run.running ? 'running' : 'ended';
  if (live.textContent !== text) live.textContent = text;
  live.className = connected && run.running ? 'on' : '';
  perfetto.disabled = false;
  perfetto.title = run.perfetto.local ? 'in the local copy of its UI' : `at ${run.perfetto.url}; the trace stays in your browser`;
}

async function show() {
  const mine = ++turn;
  const route = here();
  bar();
  if (!now) return;
  if (current?.view === route.view && current.shown.follow) {
    current.shown.follow(route);
    return;
  }
  const known = VIEWS.find((known) => known.view === route.view);
  current?.shown.close?.();
  current = null;
  place.setAttribute('aria-busy', 'true');
  try {
    if (!known) throw new Error(`this page has no view '${route.view}'`);
    const module = await known.load();
    if (mine !== turn) return;
    place.className = `view-${route.view}`;
    place.replaceChildren();
    current = { view: route.view, shown: module.open(place, now, route, actions) };
  } catch (error) {
    place.replaceChildren(
      el('p', { class: 'empty' }, 'There is nothing to show here. ', el('a', { href: href('overview') }, 'Overview')),
    );
    complain(error);
  }
  place.setAttribute('aria-busy', 'false');
}

/** Asks anew when the run has gone on; what is selected, zoomed and open stays. */
async function renew() {
  forget();
  try {
    now = await world();
    trouble.hidden = !now.run.error;
    if (now.run.error) complain(now.run.error);
    bar();
    current?.shown.refresh(now);
  } catch (error) {
    complain(error);
  }
}

addEventListener('hashchange', () => {
  trouble.hidden = !now?.run.error;
  const before = current?.view;
  show().then(() => {
    // A new view is read from its beginning, by whatever reads it.
    if (current?.view === before) return;
    scrollTo(0, 0);
    place.focus({ preventScroll: true });
    say(`${place.querySelector('h1')?.textContent ?? ''}`);
  });
});
// pushState does not tell when the way back is taken within one view; this does.
addEventListener('popstate', () => show());

document.querySelector('.skip')?.addEventListener('click', (event) => {
  event.preventDefault();
  place.focus();
});
perfetto.addEventListener('click', () => actions.perfetto());
themed(/** @type {HTMLButtonElement} */ (document.getElementById('theme')), () => current?.shown.repaint?.());

/** Renewals take turns: while one is under way, one more is enough. */
let renewing = false;
let again = false;
async function changed() {
  again = true;
  if (renewing) return;
  renewing = true;
  while (again) {
    again = false;
    await renew();
  }
  renewing = false;
}

try {
  now = await world();
  if (now.run.error) complain(now.run.error);
  await show();
  performance.mark('urscope-filled');
  follow(
    (news) => {
      if (now && (news.generation !== now.run.generation || news.running !== now.run.running)) changed();
    },
    (is) => {
      connected = is;
      bar();
    },
  );
  (globalThis.requestIdleCallback ?? setTimeout)(() => now && prepare(now.run));
} catch (error) {
  complain(error);
  place.setAttribute('aria-busy', 'false');
  place.replaceChildren(el('p', { class: 'empty' }, 'The run cannot be shown.'));
}
