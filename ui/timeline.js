/**
 * The timeline of handle lifetimes, with zoom, pan, filters and selection by pointer or keyboard. Its content is also in a table.
 * lanes.js assigns lanes, painter.js paints, input.js handles events.
 */
import { el, announce, swap } from './dom.js';
import { count, figure } from './format.js';
import { byProcess, byRule, check, choice, search } from './filters.js';
import { KEYS, STEP, listen } from './input.js';
import { after, layOut } from './lanes.js';
import { PAGE, detail, lifetimeTable, describe } from './lifetime.js';
import { fetchLifetimes } from './lifetimes.js';
import { BAR, Painter, ROW, TOP } from './painter.js';
import { amend, choose, here } from './router.js';
import { SEVERITIES, called, short } from './run.js';

/** The shortest visible range, in nanoseconds. */
const CLOSEST = 200;
/** With more exports than this, exports that do not overlap share lanes. */
const CROWD = 400;
/** How far from a lifetime a click may be to select it, in pixels. */
const NEAR = 4;

/**
 * @param {HTMLElement} container
 * @param {import('./run.js').RunData} first
 * @param {import('./router.js').Route} route
 * @param {any} actions
 */
export function open(container, first, route, actions) {
  let data = first;
  let query = route.query;
  /** @type {import('./lifetimes.js').Lifetimes | null} */
  let lifetimes = null;
  /** @type {import('./lanes.js').Layout} */
  let layout = { rows: [], rowOf: new Int32Array(0), groups: [] };
  /** @type {Uint32Array} */
  let chosen = new Uint32Array(0);
  let selected = -1;
  /** Whether the right edge follows the end of the run. */
  let following = true;
  let tableOffset = 0;
  const closed = new Set((query.get('closed') ?? '').split('.').filter(Boolean).map(Number));
  const runLength = () => Math.max(data.run.last_ns, 1);
  /** @type {import('./painter.js').Viewport} */
  const viewport = { from: 0, to: runLength(), top: 0, width: 0, height: 0, gutter: 200, last: runLength() };

  const canvas = el('canvas', {
    class: 'lanes',
    tabindex: '0',
    role: 'application',
    'aria-roledescription': 'timeline',
    'aria-label': 'Lifetimes of handles over time',
    'aria-describedby': 'timeline-keys',
  });
  const tooltip = el('div', { class: 'tooltip', hidden: true });
  const canvasArea = el('div', { class: 'canvas-area' }, canvas, tooltip);
  const form = el('div', { class: 'filters', role: 'search', 'aria-label': 'Which handles' });
  const aside = el('section', { class: 'card detail', 'aria-label': 'The selected lifetime', tabindex: '-1' });
  const head = el('span', {});
  const table = el('details', { 'data-key': 'lifetimes-table' }, el('summary', {}, 'The visible part as a table'));
  const rowsOfTable = el('div', {});
  table.append(rowsOfTable);
  const tool = (/** @type {string} */ label, /** @type {string} */ name, /** @type {() => void} */ act) =>
    el('button', { type: 'button', 'aria-label': name, title: name, onclick: act }, label);
  swap(
    container,
    el('h1', { class: 'unseen' }, 'Timeline'),
    el(
      'section',
      { class: 'card', 'aria-label': 'Timeline' },
      form,
      el(
        'div',
        { class: 'legend' },
        head,
        [
          ['memory', 'memory'],
          ['physical', 'physical memory'],
          ['event', 'event'],
        ].map(([kind, name]) => el('span', {}, el('i', { class: kind }), name)),
        el('span', {}, 'thick: a handle, from get to put; thin, below it: an opening'),
        el('span', {}, '▲ error ◆ warning ● note'),
        el(
          'span',
          { class: 'tools' },
          tool('−', 'Zoom out', () => zoom(STEP)),
          tool('+', 'Zoom in', () => zoom(1 / STEP)),
          tool('Whole run', 'The whole run', () => showRange(0, runLength())),
        ),
      ),
      el('div', { class: 'timeline' }, canvasArea, aside),
      table,
    ),
  );

  const painter = new Painter(canvas);
  const severity = (/** @type {number} */ lifetime) =>
    SEVERITIES.find((grade) =>
      lifetimes?.findings.get(lifetime)?.some((index) => data.check.findings[index]?.severity === grade),
    ) ?? 'note';
  /** @type {{time: number, severity: string}[]} */
  let findings = [];
  let paintDue = false;

  function paint() {
    paintDue = false;
    if (!lifetimes || viewport.width === 0) return;
    painter.paint({
      lifetimes,
      layout,
      viewport,
      selected,
      worst: severity,
      closed,
      findings,
      called: (process) => called(data.run, process),
      short: (process) => short(data.run, process),
    });
  }
  function schedulePaint() {
    if (paintDue) return;
    paintDue = true;
    requestAnimationFrame(paint);
  }

  // --- The visible range ----------------------------------------------------------------------------------

  /** Writes the visible range into its fields. */
  function updateRangeFields() {
    for (const [name, ns] of [
      ['From', viewport.from],
      ['To', viewport.to],
    ]) {
      const field = form.querySelector(`[data-key="filter ${name}"]`);
      if (field && field !== document.activeElement) field.value = (Number(ns) / 1e9).toFixed(6);
    }
  }
  let updateTimer = 0;
  /** Updates the address and the table after a pause: they take longer than a frame. */
  function scheduleUpdate() {
    clearTimeout(updateTimer);
    updateTimer = setTimeout(() => {
      if (here().view !== 'timeline') return;
      const all = viewport.from <= 0 && following;
      amend({
        from: all ? null : Math.round(viewport.from),
        to: all || following ? null : Math.round(viewport.to),
        top: viewport.top > 0 ? Math.round(viewport.top / ROW) : null,
      });
      updateRangeFields();
      tableOffset = 0;
      drawTable();
    }, 250);
  }

  /** @param {number} from @param {number} to */
  function showRange(from, to) {
    const length = Math.min(Math.max(to - from, CLOSEST), runLength());
    viewport.from = Math.min(Math.max(from, 0), runLength() - length);
    viewport.to = viewport.from + length;
    following = viewport.to >= runLength();
    schedulePaint();
    scheduleUpdate();
  }
  /** @param {number} factor @param {number} [at]  the fixed point, as a fraction of the width */
  function zoom(factor, at = 0.5) {
    const length = viewport.to - viewport.from;
    const next = Math.min(Math.max(length * factor, CLOSEST), runLength());
    const from = viewport.from + (length - next) * at;
    showRange(from, from + next);
  }
  const pan = (/** @type {number} */ part) =>
    showRange(viewport.from + (viewport.to - viewport.from) * part, viewport.to + (viewport.to - viewport.from) * part);
  /** @param {number} top */
  function scroll(top) {
    viewport.top = Math.min(Math.max(top, 0), Math.max(0, layout.rows.length * ROW - (viewport.height - TOP)));
    schedulePaint();
    scheduleUpdate();
  }
  /** Scrolls to a lifetime if it is not visible. @param {number} lifetime */
  function reveal(lifetime) {
    const row = layout.rowOf[lifetime] ?? -1;
    if (row < 0 || !lifetimes) return;
    const seen = viewport.height - TOP;
    if (row * ROW < viewport.top || (row + 2) * ROW > viewport.top + seen) scroll(row * ROW - seen / 3);
    const end = Math.min(lifetimes.to[lifetime], runLength());
    if (end < viewport.from || lifetimes.from[lifetime] > viewport.to) {
      const length = viewport.to - viewport.from;
      showRange((lifetimes.from[lifetime] + end - length) / 2, (lifetimes.from[lifetime] + end + length) / 2);
    }
  }
  /** @param {number} lifetime */
  function zoomTo(lifetime) {
    if (!lifetimes || lifetime < 0) return;
    const end = Math.min(lifetimes.to[lifetime], runLength());
    const margin = Math.max((end - lifetimes.from[lifetime]) * 0.15, CLOSEST);
    showRange(lifetimes.from[lifetime] - margin, end + margin);
  }

  // --- The selection --------------------------------------------------------------------------------------

  const controls = {
    zoom: () => zoomTo(selected),
    drop: () => {
      select(-1);
      canvas.focus();
    },
    select: (/** @type {number} */ lifetime) => select(lifetime),
    perfetto: actions.perfetto,
  };
  /** @param {number} lifetime @param {{step?: boolean}} [how] */
  function select(lifetime, { step = true } = {}) {
    selected = lifetime;
    if (step) amend({ sel: lifetime >= 0 && lifetimes ? lifetimes.name(lifetime) : null, at: null }, { step: true });
    aside.dataset.lifetime = lifetime >= 0 && lifetimes ? lifetimes.name(lifetime) : '';
    if (lifetime >= 0 && lifetimes) {
      reveal(lifetime);
      detail(aside, data, lifetimes, lifetime, controls);
      announce(describe(lifetimes, lifetime, data.run));
    } else {
      swap(
        aside,
        el('h2', {}, 'Nothing selected'),
        el('p', {}, 'Click a lifetime to see its history. Keys, while the timeline has the focus:'),
        el(
          'dl',
          { class: 'keys', id: 'timeline-keys' },
          KEYS.map(([keys, does]) => [
            el(
              'dt',
              {},
              keys.split(' ').map((key) => (key === '+' && keys.startsWith('Shift') ? ' + ' : el('kbd', {}, key))),
            ),
            el('dd', {}, does),
          ]),
        ),
      );
    }
    schedulePaint();
    drawTable();
  }
  /** Selects the next lifetime in the order of lanes. @param {number} by */
  function selectNext(by) {
    if (!lifetimes || layout.rows.length === 0) return;
    let row = selected >= 0 ? layout.rowOf[selected] : by > 0 ? Math.floor(viewport.top / ROW) : layout.rows.length;
    let at = selected >= 0 && row >= 0 ? layout.rows[row].lifetimes.indexOf(selected) + by : by > 0 ? 0 : -1;
    row = Math.max(row, 0);
    while (row >= 0 && row < layout.rows.length && layout.rows[row].lifetimes[at] === undefined) {
      row += by;
      at = by > 0 ? 0 : (layout.rows[row]?.lifetimes.length ?? 0) - 1;
    }
    const next = layout.rows[row]?.lifetimes[at];
    if (next !== undefined) select(next);
    else announce(by > 0 ? 'This is the last lifetime.' : 'This is the first lifetime.');
  }
  /** Selects the lifetime that is nearest in time in another lane. @param {number} by */
  function selectInOtherLane(by) {
    if (!lifetimes || selected < 0) return selectNext(by);
    for (let row = layout.rowOf[selected] + by; row >= 0 && row < layout.rows.length; row += by) {
      const lane = layout.rows[row].lifetimes;
      if (lane.length > 0) return select(lane[Math.min(after(lifetimes.to, lane, lifetimes.from[selected]), lane.length - 1)]);
    }
  }
  /** The row and the lifetime at a position of the canvas. @param {number} x @param {number} y */
  function hitTest(x, y) {
    if (!lifetimes || y < TOP || x > viewport.width - BAR) return { row: null, lifetime: -1 };
    const row = layout.rows[Math.floor((y - TOP + viewport.top) / ROW)] ?? null;
    if (!row || row.head || x < viewport.gutter) return { row, lifetime: -1 };
    const time = (/** @type {number} */ x) =>
      viewport.from + ((x - viewport.gutter) / (viewport.width - viewport.gutter - BAR)) * (viewport.to - viewport.from);
    const at = after(lifetimes.to, row.lifetimes, time(x - NEAR));
    const now = time(x);
    let best = -1;
    let distance = Infinity;
    for (let i = at; i < Math.min(at + 64, row.lifetimes.length); i++) {
      const lifetime = row.lifetimes[i];
      const off = Math.max(lifetimes.from[lifetime] - now, now - lifetimes.to[lifetime], 0);
      if (lifetimes.from[lifetime] > time(x + NEAR)) break;
      if (off < distance) [best, distance] = [lifetime, off];
    }
    return { row, lifetime: best };
  }

  listen(canvas, tooltip, viewport, {
    showRange,
    zoom,
    pan,
    scroll,
    hitTest,
    zoomTo,
    zoomToSelected: () => zoomTo(selected),
    selectNext,
    selectInOtherLane,
    toggleGroup,
    select,
    runLength,
    rows: () => layout.rows.length,
    details: () => aside.focus(),
    describe: (lifetime) => (lifetimes ? describe(lifetimes, lifetime, data.run) : ''),
  });

  // --- Filters and layout ---------------------------------------------------------------------------------

  const value = (/** @type {string} */ name) => query.get(name) ?? '';
  /** @type {import('./filters.js').Want} */
  function want(changes) {
    choose(query, changes);
    filters();
    updateLayout();
  }
  /** @param {number} process */
  function toggleGroup(process) {
    if (!closed.delete(process)) closed.add(process);
    amend({ closed: [...closed].join('.') }, { step: true });
    updateLayout();
  }
  function filters() {
    swap(
      form,
      search('Search', value('q'), (q) => want({ q }), 'address, fingerprint'),
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
      data.run.running &&
        check('Follow the run', following, (on) => {
          if (on) showRange(viewport.from, runLength());
          else following = false;
        }),
    );
  }
  /** @param {string} label @param {number} ns @param {(ns: number) => void} chosen */
  function seconds(label, ns, chosen) {
    return el(
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
  }

  /** Lays out the lifetimes that match the filters. */
  function updateLayout() {
    if (!lifetimes) return;
    const kept = selected >= 0 ? lifetimes.name(selected) : '';
    chosen = lifetimes.chosen(
      { kind: value('kind'), process: value('process'), rule: value('rule'), q: value('q') },
      data.check.findings,
    );
    let exports = 0;
    if (!value('lanes'))
      exports = new Set(Array.from(chosen, (lifetime) => /** @type {any} */ (lifetimes).export[lifetime])).size;
    layout = layOut(lifetimes, chosen, { packed: value('lanes') === 'packed' || exports > CROWD, closed });
    findings = data.check.findings
      .filter(
        (/** @type {any} */ found) =>
          !found.excuse && (!value('rule') || value('rule') === 'any' || found.rule === value('rule')),
      )
      .slice(0, 2000)
      .map((/** @type {any} */ found) => ({ time: found.time_ns, severity: found.severity }));
    head.textContent = `${count(chosen.length, 'lifetime')}${chosen.length < lifetimes.total ? ` of ${figure(lifetimes.total)}` : ''}${lifetimes.size < lifetimes.total && lifetimes.size === chosen.length ? ' (the first)' : ''}`;
    selected = kept ? lifetimes.named(kept) : -1;
    measure();
    drawTable();
    schedulePaint();
  }
  function drawTable() {
    if (!table.open || !lifetimes) return;
    const shown = chosen.filter(
      (lifetime) =>
        /** @type {any} */ (lifetimes).to[lifetime] >= viewport.from &&
        /** @type {any} */ (lifetimes).from[lifetime] <= viewport.to,
    );
    swap(
      rowsOfTable,
      shown.length === 0
        ? el('p', { class: 'empty' }, 'No lifetime is visible.')
        : lifetimeTable('The visible part', data, lifetimes, shown, {
            offset: Math.min(tableOffset, Math.max(0, shown.length - 1)),
            select: controls.select,
            selected,
            size: PAGE,
            turn: (offset) => {
              tableOffset = offset;
              drawTable();
            },
          }),
    );
  }
  table.addEventListener('toggle', drawTable);

  function measure() {
    const width = Math.floor(canvasArea.clientWidth);
    const room = Math.max(220, Math.min(innerHeight - 230, 900));
    viewport.width = width;
    viewport.gutter = width < 560 ? 96 : 210;
    viewport.height = Math.min(room, Math.max(TOP + layout.rows.length * ROW + 8, 160));
    scroll(viewport.top);
  }
  const sizes = new ResizeObserver(() => measure());
  sizes.observe(canvasArea);

  /** Applies the range and the selection in the address. */
  function applyRoute() {
    if (value('from') || value('to')) showRange(Number(value('from') || 0), Number(value('to') || runLength()));
    else showRange(0, runLength());
    updateRangeFields();
    if (!lifetimes) return;
    const meant = value('sel') ? lifetimes.named(value('sel')) : value('at') ? lifetimes.known(value('at')) : -1;
    select(meant, { step: false });
    if (value('top')) scroll(Number(value('top')) * ROW);
  }

  async function load() {
    let shown = lifetimes !== null;
    const take = (/** @type {import('./lifetimes.js').Lifetimes} */ some) => {
      const kept = selected >= 0 && lifetimes ? lifetimes.name(selected) : null;
      const begun = lifetimes !== null;
      lifetimes = some;
      selected = kept ? some.named(kept) : -1;
      updateLayout();
      if (!begun) applyRoute();
      else if (kept && selected >= 0) detail(aside, data, some, selected, controls);
    };
    try {
      const all = await fetchLifetimes(data.run.lives, (some) => {
        if (shown) return;
        shown = true;
        take(some);
      });
      const wanted = selected < 0 && (value('sel') || value('at'));
      take(all);
      if (wanted) applyRoute();
      if (all.total === 0) head.textContent = 'No process got a handle.';
    } catch (error) {
      if (!lifetimes) head.textContent = 'The handles cannot be shown.';
      actions.showError(error);
    }
    canvasArea.setAttribute('data-ready', 'true');
  }

  filters();
  select(-1, { step: false });
  if (value('from') || value('to')) showRange(Number(value('from') || 0), Number(value('to') || runLength()));
  measure();
  load();
  return {
    /** @param {import('./run.js').RunData} next */
    refresh(next) {
      data = next;
      viewport.last = runLength();
      if (following) {
        viewport.to = runLength();
        schedulePaint();
      }
      filters();
      load();
    },
    /** @param {import('./router.js').Route} route */
    follow(route) {
      const before = query;
      query = route.query;
      const same = ['q', 'kind', 'process', 'rule', 'lanes', 'closed'].every((name) => (before.get(name) ?? '') === value(name));
      closed.clear();
      for (const process of value('closed').split('.').filter(Boolean)) closed.add(Number(process));
      if (!same) {
        filters();
        updateLayout();
      }
      applyRoute();
    },
    repaint() {
      painter.repaint();
      schedulePaint();
    },
    close() {
      sizes.disconnect();
      clearTimeout(updateTimer);
    },
  };
}
