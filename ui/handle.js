/**
 * The life of one handle over all processes, by the fingerprint of its data or an address in any of them.
 */
import { ask } from './api.js';
import { el, swap } from './dom.js';
import { badge } from './format.js';
import { href } from './router.js';
import { finding, nameOf } from './run.js';
import { moments } from './finding_sides.js';

/**
 * @param {HTMLElement} place
 * @param {import('./run.js').World} first
 * @param {import('./router.js').Route} route
 */
export function open(place, first, route) {
  let world = first;
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
    if (!place.hasChildNodes()) swap(place, head, el('p', { class: 'empty' }, 'Reading…'));
    let story;
    try {
      story = await ask('handle', { name });
    } catch (error) {
      if (mine === name) swap(place, head, el('p', { class: 'empty' }, /** @type {Error} */ (error).message));
      return;
    }
    if (mine !== name) return;
    const all = world.check.findings;
    swap(
      place,
      head,
      story.fingerprints.length > 1 &&
        el('p', {}, `An address that was used again: it is about the handle data ${story.fingerprints.join(', ')}.`),
      el(
        'section',
        { class: 'card', 'aria-labelledby': 'law' },
        el('h2', { id: 'law' }, 'What the law says of it'),
        story.findings.length === 0
          ? el('p', { class: 'empty' }, 'Nothing.')
          : el(
              'ul',
              { class: 'findings' },
              story.findings.map((/** @type {any} */ found) => {
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
        { class: 'card', 'aria-labelledby': 'life' },
        el('h2', { id: 'life' }, 'Its life'),
        moments(world.run, story),
      ),
    );
  }
  draw();
  return {
    /** @param {import('./run.js').World} next */
    refresh(next) {
      world = next;
      draw();
    },
    /** @param {import('./router.js').Route} route */
    follow(route) {
      if (route.name === name) return;
      name = route.name;
      place.replaceChildren();
      draw();
    },
  };
}
