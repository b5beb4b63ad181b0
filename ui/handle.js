/**
 * The history of one handle across all processes, by the fingerprint of its data or by an address in any process.
 */
import { ask } from './api.js';
import { el, swap } from './dom.js';
import { badge } from './format.js';
import { href } from './router.js';
import { finding, nameOf } from './run.js';
import { historyTable } from './finding_sides.js';

/**
 * @param {HTMLElement} container
 * @param {import('./run.js').RunData} first
 * @param {import('./router.js').Route} route
 */
export function open(container, first, route) {
  let data = first;
  let name = route.name;

  async function draw() {
    const mine = name;
    const head = [
      el(
        'nav',
        { class: 'crumbs', 'aria-label': 'Handles' },
        el('a', { href: href('handles') }, 'Handles'),
        el('a', { href: href('timeline', '', { at: name }) }, 'On the timeline'),
        el('a', { href: href('calls', '', { fingerprint: name }) }, 'All its calls'),
      ),
      el('h1', {}, 'Handle ', el('span', { class: 'code' }, name)),
    ];
    if (!container.hasChildNodes()) swap(container, head, el('p', { class: 'empty' }, 'Reading…'));
    let history;
    try {
      history = await ask('handle', { name });
    } catch (error) {
      if (mine === name) swap(container, head, el('p', { class: 'empty' }, /** @type {Error} */ (error).message));
      return;
    }
    if (mine !== name) return;
    const all = data.check.findings;
    swap(
      container,
      head,
      history.fingerprints.length > 1 &&
        el('p', {}, `This address was reused. It stood for the handle data ${history.fingerprints.join(', ')}.`),
      el(
        'section',
        { class: 'card', 'aria-labelledby': 'findings' },
        el('h2', { id: 'findings' }, 'Findings'),
        history.findings.length === 0
          ? el('p', { class: 'empty' }, 'None.')
          : el(
              'ul',
              { class: 'findings' },
              history.findings.map((/** @type {any} */ found) => {
                const index = all.findIndex(
                  (/** @type {any} */ one) => one.identity === found.identity && one.time_ns === found.time_ns,
                );
                const at = index >= 0 ? index : finding(all, found.identity);
                const text = [badge(found.severity), ' ', el('strong', {}, found.rule), ' ', found.message];
                return el(
                  'li',
                  { class: `finding ${found.severity}` },
                  at >= 0 ? el('a', { href: href('finding', nameOf(all, at)) }, text) : text,
                );
              }),
            ),
      ),
      el(
        'section',
        { class: 'card', 'aria-labelledby': 'lifetime' },
        el('h2', { id: 'lifetime' }, 'History'),
        historyTable(data.run, history),
      ),
    );
  }
  draw();
  return {
    /** @param {import('./run.js').RunData} next */
    refresh(next) {
      data = next;
      draw();
    },
    /** @param {import('./router.js').Route} route */
    follow(route) {
      if (route.name === name) return;
      name = route.name;
      container.replaceChildren();
      draw();
    },
  };
}
