/**
 * The form and the legend above the timeline.
 */
import { el, swap } from './dom.js';
import { byProcess, byRule, check, choice, search } from './filters.js';
import { CLOSEST } from './range.js';

/**
 * @param {{value: (name: string) => string, want: import('./filters.js').Want, showRange: (from: number, to: number) => void,
 *   viewport: import('./painter.js').Viewport, following: () => boolean, follow: (on: boolean) => void, head: HTMLElement}} state
 * @param {{out: () => void, in: () => void, home: () => void, whole: () => void, all: () => void}} acts
 */
export function controls({ value, want, showRange, viewport, following, follow, head }, acts) {
  const form = el('div', { class: 'filters', role: 'search', 'aria-label': 'Which handles' });
  const tool = (/** @type {string} */ label, /** @type {string} */ name, /** @type {() => void} */ act) =>
    el('button', { type: 'button', 'aria-label': name, title: name, onclick: act }, label);
  const legend = el(
    'div',
    { class: 'legend' },
    head,
    [
      ['memory', 'memory'],
      ['physical', 'physical memory'],
      ['event', 'event'],
      ['opening', 'opening'],
      ['allocation', 'allocated to freed'],
    ].map(([kind, name]) => el('span', {}, el('i', { class: kind }), name)),
    el('span', {}, '▲ error ◆ warning ● note'),
    el(
      'span',
      { class: 'tools' },
      tool('−', 'Zoom out', acts.out),
      tool('+', 'Zoom in', acts.in),
      tool('Activity', 'Activity: where something is shared', acts.home),
      tool('Whole run', 'The whole run', acts.whole),
      tool('All lanes', 'All lanes: open or shut all processes', acts.all),
    ),
  );
  /** @param {string} label @param {number} ns @param {(ns: number) => void} chosen */
  const seconds = (label, ns, chosen) =>
    el(
      'label',
      {},
      `${label} (s)`,
      el('input', {
        type: 'number',
        min: '0',
        step: 'any',
        value: (ns / 1e9).toFixed(6),
        'data-key': `filter ${label}`,
        onchange: (/** @type {any} */ event) => chosen(Number(event.target.value) * 1e9),
      }),
    );
  return {
    form,
    legend,
    /** Shows the filters of the address. @param {import('./run.js').RunData} data */
    update(data) {
      swap(
        form,
        search('Search', value('q'), (q) => want({ q }), 'call site, address'),
        choice('Kind', value('kind'), ['memory', ['physical', 'physical memory'], 'event'], (kind) => want({ kind })),
        byProcess(data, value('process'), want),
        byRule(data, value('rule'), want),
        choice(
          'Lanes',
          value('lanes'),
          [
            ['each', 'one per handle'],
            ['packed', 'shared'],
          ],
          (lanes) => want({ lanes }),
          'automatic',
        ),
        seconds('From', viewport.from, (ns) => showRange(ns, Math.max(viewport.to, ns + CLOSEST))),
        seconds('To', viewport.to, (ns) => showRange(Math.min(viewport.from, ns - CLOSEST), ns)),
        data.run.running && check('Follow the run', following(), follow),
      );
    },
    /** Writes the visible range into its fields. */
    updateRange() {
      for (const [name, ns] of [
        ['From', viewport.from],
        ['To', viewport.to],
      ]) {
        const field = form.querySelector(`[data-key="filter ${name}"]`);
        if (field && field !== document.activeElement) field.value = (Number(ns) / 1e9).toFixed(6);
      }
    },
  };
}
