/**
 * The timeline of handle lifetimes, with zoom, pan, filters and selection by pointer or keyboard. Its content is also in a table.
 * lanes.js assigns rows, painter.js paints, input.js handles events, controls.js makes the form above.
 */
import { controls as makeControls } from './controls.js';
import { el, announce, swap } from './dom.js';
import { count, figure } from './format.js';
import { nothingSelected } from './in_view.js';
import { KEYS, STEP, listen } from './input.js';
import { FOUND, OPEN, SHUT, grouped, layOut } from './lanes.js';
import { PAGE, aboutInstant, detail, describe, lifetimeTable, tell } from './lifetime.js';
import { fetchLifetimes } from './lifetimes.js';
import { byLifetime, instantsOf } from './marks.js';
import { BAR, NEAR, ROW, TOP } from './measures.js';
import { Painter } from './painter.js';
import { CLOSEST, home, setRange } from './range.js';
import { inOtherLane, nearest, neighbour } from './neighbours.js';
import { amend, choose, here } from './router.js';
import { called, finding, inOrder, nameOf, short } from './run.js';

/** With more exports than this in a process, exports that do not overlap share lanes. */
const CROWD = 400;
/** With at most this many, all lanes are open at the beginning. */
const FEW = { lifetimes: 500, exports: 24 };
/** How far from a lifetime a click may be to select it, in pixels. */
const REACH = 4;

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
  let layout = { rows: [], rowOf: new Int32Array(0), headOf: new Int32Array(0), groups: [] };
  /** @type {Uint32Array} */
  let chosen = new Uint32Array(0);
  let selected = -1;
  /** @type {import('./marks.js').Instant[]} */
  let instants = [];
  /** @type {Map<number, import('./marks.js').Instant[]>} */
  let ofLifetime = new Map();
  /** @type {import('./marks.js').Instant | null} */
  let instant = null;
  /** @type {[number, number] | null} */
  let band = null;
  /** Whether the right edge follows the end of the run. */
  let following = data.run.running;
  let tableOffset = 0;
  let few = false;
  const isHome = () => viewport.from === begin.from && viewport.to === begin.to;
  const order = () => inOrder(data.run).map(({ index }) => index);
  const runLength = () => Math.max(data.run.last_ns, 1);
  let begin = { from: 0, to: runLength() };
  /** @type {import('./painter.js').Viewport} */
  const viewport = { from: 0, to: runLength(), top: 0, width: 0, height: 0, gutter: 240, last: runLength() };
  const value = (/** @type {string} */ name) => query.get(name) ?? '';

  const canvas = el('canvas', {
    class: 'lanes',
    tabindex: '0',
    role: 'application',
    'aria-roledescription': 'timeline',
    'aria-label': 'Lifetimes of handles over time',
    'aria-description': KEYS.map(([names, does]) => `${names}: ${does}`).join('; '),
  });
  const tooltip = el('div', { class: 'tooltip', hidden: true });
  const canvasArea = el('div', { class: 'canvas-area' }, canvas, tooltip);
  const aside = el('section', { class: 'card detail', 'aria-label': 'What is selected', tabindex: '-1' });
  const head = el('span', {});
  const table = el('details', { 'data-key': 'lifetimes-table' }, el('summary', {}, 'The visible part as a table'));
  const rowsOfTable = el('div', {});
  table.append(rowsOfTable);
  const controls = makeControls(
    { value, want, showRange, viewport, following: () => following, follow, head },
    { out: () => zoom(STEP), in: () => zoom(1 / STEP), home: goHome, whole: () => showRange(0, runLength()), all: toggleAll },
  );
  swap(
    container,
    el('h1', { class: 'unseen' }, 'Timeline'),
    el(
      'section',
      { class: 'card', 'aria-label': 'Timeline' },
      controls.form,
      controls.legend,
      el('div', { class: 'timeline' }, canvasArea, aside),
      table,
    ),
  );

  const painter = new Painter(canvas);
  let paintDue = false;
  function paint() {
    paintDue = false;
    if (!lifetimes || viewport.width === 0) return;
    painter.paint({
      lifetimes,
      chosen,
      layout,
      viewport,
      selected,
      instant,
      instants,
      of: ofLifetime,
      mode,
      band,
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

  let updateTimer = 0;
  /** Updates the address and the table after a pause: they take longer than a frame. */
  function scheduleUpdate() {
    clearTimeout(updateTimer);
    updateTimer = setTimeout(() => {
      if (here().view !== 'timeline') return;
      const [from, to] = [Math.round(viewport.from), Math.round(viewport.to)];
      const atHome = Math.abs(from - begin.from) <= 1 && (following || Math.abs(to - begin.to) <= 1);
      amend({
        from: atHome ? null : from,
        to: atHome || following ? null : to,
        top: viewport.top > 0 ? Math.round(viewport.top / ROW) : null,
      });
      controls.updateRange();
      tableOffset = 0;
      drawTable();
      if (selected < 0 && !instant) drawAside();
    }, 250);
  }
  /** @param {number} from @param {number} to */
  function showRange(from, to) {
    setRange(viewport, from, to, runLength());
    following = data.run.running && viewport.to >= runLength();
    schedulePaint();
    scheduleUpdate();
  }
  function goHome() {
    showRange(begin.from, begin.to);
  }
  /** @param {boolean} on */
  function follow(on) {
    if (on) showRange(viewport.from, runLength());
    else following = false;
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
  /** @param {number} top @returns {boolean} whether it scrolled */
  function scroll(top) {
    const before = viewport.top;
    viewport.top = Math.min(Math.max(top, 0), Math.max(0, layout.rows.length * ROW - (viewport.height - TOP)));
    schedulePaint();
    scheduleUpdate();
    return viewport.top !== before;
  }
  /** Scrolls to a row if it is not visible. @param {number} row */
  function revealRow(row) {
    const seen = viewport.height - TOP;
    if (row >= 0 && (row * ROW < viewport.top || (row + 2) * ROW > viewport.top + seen)) scroll(row * ROW - seen / 3);
  }
  /** Opens and scrolls to a lifetime if it is not visible. @param {number} lifetime */
  function reveal(lifetime) {
    if (!lifetimes) return;
    if (layout.rowOf[lifetime] < 0) {
      const group = layout.groups.find((group) => group.members.includes(lifetime));
      if (group) setMode(group.process, OPEN);
    }
    revealRow(layout.rowOf[lifetime] ?? -1);
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

  const selection = {
    zoom: () => zoomTo(selected),
    drop: () => {
      select(-1);
      canvas.focus();
    },
    select: (/** @type {number} */ lifetime) => select(lifetime),
    perfetto: actions.perfetto,
  };
  function drawAside() {
    aside.dataset.lifetime = selected >= 0 && lifetimes ? lifetimes.name(selected) : '';
    if (selected >= 0 && lifetimes) detail(aside, data, lifetimes, selected, selection);
    else if (instant && lifetimes) aboutInstant(aside, data, instant, selection);
    else {
      const keys = KEYS.filter(([names]) => !names.startsWith('Shift')).slice(0, 7);
      nothingSelected(aside, lifetimes, chosen, viewport, keys);
    }
  }
  /** @param {number} lifetime @param {{step?: boolean}} [how] */
  function select(lifetime, { step = true } = {}) {
    selected = lifetime;
    if (lifetime < 0 && step) instant = null;
    const name = lifetime >= 0 && lifetimes ? lifetimes.name(lifetime) : null;
    if (step)
      amend({ sel: name, at: null, finding: instant ? nameOf(data.check.findings, instant.finding) : null }, { step: true });
    if (lifetime >= 0 && lifetimes) {
      reveal(lifetime);
      announce(describe(lifetimes, lifetime, data.run));
    }
    drawAside();
    schedulePaint();
    drawTable();
  }
  /** Goes to a mistake: shows its moment, and selects the lifetime that it concerns. @param {import('./marks.js').Instant} meant */
  function goTo(meant) {
    instant = meant;
    if (meant.time < viewport.from || meant.time > viewport.to || viewport.to - viewport.from > (begin.to - begin.from) / 4) {
      const length = Math.min(viewport.to - viewport.from, Math.max((begin.to - begin.from) / 8, CLOSEST));
      showRange(meant.time - length / 2, meant.time + length / 2);
    }
    const own = meant.lifetimes.find((lifetime) => lifetimes?.process[lifetime] === meant.process);
    const lifetime = own ?? meant.lifetimes[0] ?? -1;
    selected = lifetime;
    const name = lifetime >= 0 && lifetimes ? lifetimes.name(lifetime) : null;
    amend({ sel: name, at: null, finding: nameOf(data.check.findings, meant.finding) }, { step: true });
    const row = lifetime >= 0 && layout.rowOf[lifetime] >= 0 ? layout.rowOf[lifetime] : layout.headOf[meant.process];
    revealRow(row ?? -1);
    announce(data.run.sentences[meant.finding]?.text ?? '');
    drawAside();
    schedulePaint();
    drawTable();
  }
  /** @param {number} by */
  function nextInstant(by) {
    if (instants.length === 0) return announce('There is no finding.');
    const now = instant ? instants.indexOf(instant) + by : by > 0 ? 0 : instants.length - 1;
    if (instants[now]) goTo(instants[now]);
    else announce(by > 0 ? 'This is the last finding.' : 'This is the first finding.');
  }
  /** What is at a position of the canvas. @param {number} x @param {number} y @returns {import('./input.js').Hit} */
  function hitTest(x, y) {
    const nothing = { row: null, lifetime: -1, instant: null };
    if (!lifetimes || x > viewport.width - BAR) return nothing;
    const near = painter.drawn.findLast((mark) => Math.hypot(mark.x - x, mark.y - y) <= NEAR);
    if (near) return { ...nothing, instant: near.instant };
    if (y < TOP) return nothing;
    const row = layout.rows[Math.floor((y - TOP + viewport.top) / ROW)] ?? null;
    if (!row || row.head || x < viewport.gutter) return { ...nothing, row };
    const time = (/** @type {number} */ x) =>
      viewport.from + ((x - viewport.gutter) / (viewport.width - viewport.gutter - BAR)) * (viewport.to - viewport.from);
    return { row, lifetime: nearest(lifetimes, row, time(x - REACH), time(x), time(x + REACH)), instant: null };
  }
  const unlisten = listen(canvas, tooltip, viewport, {
    showRange,
    zoom,
    pan,
    scroll,
    hitTest,
    zoomTo,
    zoomToSelected: () => zoomTo(selected),
    selectNext: (by) => {
      if (!lifetimes || layout.groups.length === 0) return;
      if (!layout.rows.some((row) => !row.head)) setMode(layout.groups[0].process, OPEN);
      const next = neighbour(layout, selected, by, Math.floor(viewport.top / ROW));
      if (next >= 0) select(next);
      else announce(by > 0 ? 'This is the last lifetime that is open.' : 'This is the first lifetime that is open.');
    },
    selectInOtherLane: (by) => {
      const next = lifetimes ? inOtherLane(lifetimes, layout, selected, by) : -1;
      if (next >= 0) select(next);
    },
    nextInstant,
    toggleGroup,
    toggleAll,
    select,
    goTo,
    goHome,
    runLength,
    thumb: () => Painter.thumb(layout.rows.length, viewport),
    details: () => aside.focus(),
    band: (next) => {
      if (band || next) schedulePaint();
      band = next;
    },
    describe: (hit, tooltip) => {
      if (!lifetimes) return false;
      return tell(tooltip, data, lifetimes, layout.groups[hit.row?.head ? hit.row.group : -1] ?? null, hit);
    },
  });

  // --- Filters and layout ---------------------------------------------------------------------------------

  /** The processes that a person has opened or shut, by their names in the address. @param {string} name */
  const listed = (name) => new Set(value(name).split('.').filter(Boolean).map(Number));
  /** How much of a process is shown. @param {import('./lanes.js').Group} group */
  function mode(group) {
    if (listed('open').has(group.process)) return OPEN;
    if (listed('closed').has(group.process) || value('all') === '0') return SHUT;
    if (few || value('all') === '1') return OPEN;
    return group.found > 0 ? FOUND : SHUT;
  }
  /** @param {number} process @param {number} wanted */
  function setMode(process, wanted) {
    const [open, closed] = [listed('open'), listed('closed')];
    open.delete(process);
    closed.delete(process);
    (wanted === OPEN ? open : closed).add(process);
    choose(query, { open: [...open].join('.'), closed: [...closed].join('.') });
    arrange();
  }
  /** @param {number} at */
  function toggleGroup(at) {
    const group = layout.groups[at];
    setMode(group.process, mode(group) === OPEN ? SHUT : OPEN);
  }
  function toggleAll() {
    const open = layout.groups.some((group) => mode(group) !== OPEN);
    choose(query, { all: open ? '1' : '0', open: null, closed: null });
    arrange();
  }
  /** @type {import('./filters.js').Want} */
  function want(changes) {
    choose(query, changes);
    controls.update(data);
    updateLayout();
  }
  /** Groups the lifetimes that match the filters, and finds the mistakes. */
  function updateLayout() {
    if (!lifetimes) return;
    const kept = selected >= 0 ? lifetimes.name(selected) : '';
    const wanted = { kind: value('kind'), process: value('process'), rule: value('rule'), q: value('q') };
    chosen = lifetimes.chosen(wanted, data.check.findings);
    const groups = grouped(lifetimes, chosen, order());
    few = chosen.length <= FEW.lifetimes && groups.reduce((sum, group) => sum + group.exports, 0) <= FEW.exports;
    instants = instantsOf(data, lifetimes, value('rule'));
    ofLifetime = byLifetime(instants);
    if (value('finding')) {
      const index = finding(data.check.findings, value('finding'));
      const alike = instants.filter((one) => one.finding === index);
      instant = alike.find((one) => value('at') !== '' && one.fingerprint === value('at')) ?? alike[0] ?? null;
    }
    layout = { ...layout, groups };
    selected = kept ? lifetimes.named(kept) : -1;
    head.textContent = `${count(chosen.length, 'lifetime')}${chosen.length < lifetimes.total ? ` of ${figure(lifetimes.total)}` : ''}${lifetimes.size < lifetimes.total && lifetimes.size === chosen.length ? ' (the first)' : ''}`;
    arrange();
  }
  /** Lays out the groups, each as far as it is open. */
  function arrange() {
    if (!lifetimes) return;
    const wanted = value('lanes');
    const packed =
      wanted === 'packed' || (!wanted && layout.groups.some((group) => mode(group) === OPEN && group.exports > CROWD));
    layout = layOut(lifetimes, layout.groups, { packed, mode, order: order() });
    measure();
    drawTable();
    schedulePaint();
  }
  function drawTable() {
    if (!table.open || !lifetimes) return;
    const known = lifetimes;
    const shown = chosen.filter((one) => known.to[one] >= viewport.from && known.from[one] <= viewport.to);
    swap(
      rowsOfTable,
      shown.length === 0
        ? el('p', { class: 'empty' }, 'No lifetime is visible.')
        : lifetimeTable('The visible part', data, lifetimes, shown, {
            offset: Math.min(tableOffset, Math.max(0, shown.length - 1)),
            select: selection.select,
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
    const room = Math.max(240, Math.min(innerHeight - 250, 1000));
    viewport.width = width;
    viewport.gutter = width < 560 ? 84 : width < 900 ? 180 : 240;
    viewport.height = Math.min(room, Math.max(TOP + layout.rows.length * ROW + 8, 160));
    scroll(viewport.top);
  }
  const sizes = new ResizeObserver(() => measure());
  sizes.observe(canvasArea);

  /** Applies the range and the selection in the address. */
  function applyRoute() {
    if (value('from') || value('to')) showRange(Number(value('from') || 0), Number(value('to') || runLength()));
    else goHome();
    controls.updateRange();
    if (!lifetimes) return;
    const meant = value('sel') ? lifetimes.named(value('sel')) : value('at') ? lifetimes.known(value('at')) : -1;
    if (!value('finding')) instant = null;
    select(meant, { step: false });
    if (value('top')) scroll(Number(value('top')) * ROW);
  }

  async function load() {
    let shown = lifetimes !== null;
    const take = (/** @type {import('./lifetimes.js').Lifetimes} */ some) => {
      const kept = selected >= 0 && lifetimes ? lifetimes.name(selected) : null;
      const begun = lifetimes !== null;
      lifetimes = some;
      begin = home(some.activity(), runLength());
      if (data.run.running) begin.to = runLength();
      selected = kept ? some.named(kept) : -1;
      updateLayout();
      if (!begun) applyRoute();
      else if (kept && selected >= 0) drawAside();
    };
    try {
      const all = await fetchLifetimes(data.run, (some) => {
        if (shown) return;
        shown = true;
        take(some);
      });
      const wanted = selected < 0 && (value('sel') || value('at'));
      const wasHome = isHome();
      take(all);
      if (wanted) applyRoute();
      else if (wasHome) goHome();
      if (all.total === 0) head.textContent = 'No process got a handle.';
    } catch (error) {
      if (!lifetimes) head.textContent = 'The handles cannot be shown.';
      actions.showError(error);
    }
    canvasArea.setAttribute('data-ready', 'true');
  }

  controls.update(data);
  drawAside();
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
      controls.update(data);
      load();
    },
    /** @param {import('./router.js').Route} route */
    follow(route) {
      const before = query;
      query = route.query;
      const changed = (/** @type {string[]} */ names) => names.some((name) => (before.get(name) ?? '') !== value(name));
      if (changed(['q', 'kind', 'process', 'rule', 'finding'])) {
        controls.update(data);
        updateLayout();
      } else if (changed(['lanes', 'open', 'closed', 'all'])) arrange();
      applyRoute();
    },
    repaint() {
      painter.repaint();
      schedulePaint();
    },
    close() {
      sizes.disconnect();
      unlisten();
      clearTimeout(updateTimer);
    },
  };
}
