/**
 * The timeline of handle lifetimes, with zoom, pan, filters and selection by pointer or keyboard. Its content is also in a table.
 * This file has its elements and draws them; timeline_range.js, timeline_filter.js and timeline_selection.js change what they show.
 */
import { controls } from './controls.js';
import { el, swap } from './dom.js';
import { count, figure } from './format.js';
import { nothingSelected } from './in_view.js';
import { KEYS, STEP, listen } from './input.js';
import { PAGE, aboutInstant, detail, lifetimeTable, tell } from './lifetime.js';
import { fetchLifetimes } from './lifetimes.js';
import { BAR, NEAR, ROW, TOP } from './measures.js';
import { Painter } from './painter.js';
import { home } from './range.js';
import { nearest } from './neighbours.js';
import { amend, choose, here } from './router.js';
import { called, short } from './run.js';
import { TimelineFilter } from './timeline_filter.js';
import { TimelineRange } from './timeline_range.js';
import { TimelineSelection } from './timeline_selection.js';
import { TimelineState } from './timeline_state.js';

/** How far from a lifetime a click may be to select it, in pixels. */
const REACH = 4;
/** After this pause, in milliseconds, the address and the table are updated: they take longer than a frame. */
const PAUSE = 250;

/**
 * @param {HTMLElement} container
 * @param {import('./run.js').RunData} data
 * @param {import('./router.js').Route} route
 * @param {any} actions
 */
export const open = (container, data, route, actions) => new Timeline(container, data, route.query, actions);

class Timeline {
  /** @param {HTMLElement} container @param {import('./run.js').RunData} data @param {URLSearchParams} query @param {any} actions */
  constructor(container, data, query, actions) {
    this.actions = actions;
    this.state = new TimelineState(data, query);
    this.range = new TimelineRange(this.state, () => {
      this.schedulePaint();
      this.scheduleUpdate();
    });
    this.filter = new TimelineFilter(this.state, () => {
      this.measure();
      this.drawTable();
      this.schedulePaint();
    });
    this.selection = new TimelineSelection(this.state, this.range, this.filter, () => {
      this.drawAside();
      this.schedulePaint();
      this.drawTable();
    });
    /** What is marked by a drag. @type {[number, number] | null} */
    this.band = null;
    this.paintDue = false;
    this.updateTimer = 0;
    this.tableOffset = 0;
    this.controls = this.makeElements(container);
    this.painter = new Painter(this.canvas);
    this.unlisten = this.listen();
    this.table.addEventListener('toggle', () => this.drawTable());
    this.sizes = new ResizeObserver(() => this.measure());
    this.sizes.observe(this.canvasArea);
    this.controls.update(data);
    this.drawAside();
    if (this.state.value('from') || this.state.value('to')) this.showAddressed();
    this.measure();
    this.load();
  }

  // --- The elements ---------------------------------------------------------------------------------------

  /** Makes them, and returns the form and the legend. @param {HTMLElement} container */
  makeElements(container) {
    this.canvas = el('canvas', {
      class: 'lanes',
      tabindex: '0',
      role: 'application',
      'aria-roledescription': 'timeline',
      'aria-label': 'Lifetimes of handles over time',
      'aria-description': KEYS.map(([names, does]) => `${names}: ${does}`).join('; '),
    });
    this.tooltip = el('div', { class: 'tooltip', hidden: true });
    this.canvasArea = el('div', { class: 'canvas-area' }, this.canvas, this.tooltip);
    this.aside = el('section', { class: 'card detail', 'aria-label': 'What is selected', tabindex: '-1' });
    this.head = el('span', {});
    this.rowsOfTable = el('div', {});
    const summary = el('summary', {}, 'The visible part as a table');
    this.table = el('details', { 'data-key': 'lifetimes-table' }, summary, this.rowsOfTable);
    const made = this.makeControls();
    swap(
      container,
      el('h1', { class: 'unseen' }, 'Timeline'),
      el(
        'section',
        { class: 'card', 'aria-label': 'Timeline' },
        made.form,
        made.legend,
        el('div', { class: 'timeline' }, this.canvasArea, this.aside),
        this.table,
      ),
    );
    return made;
  }

  makeControls() {
    const { state, range, filter, head } = this;
    return controls(
      {
        value: (name) => state.value(name),
        want: (changes) => {
          choose(state.query, changes);
          this.controls.update(state.data);
          this.applyFilter();
        },
        showRange: (from, to) => range.show(from, to),
        viewport: state.viewport,
        following: () => state.following,
        follow: (on) => range.follow(on),
        head,
      },
      {
        out: () => range.zoom(STEP),
        in: () => range.zoom(1 / STEP),
        home: () => range.goHome(),
        whole: () => range.showAll(),
        all: () => filter.toggleAll(),
      },
    );
  }

  listen() {
    const { state, range, filter, selection, canvas, tooltip } = this;
    return listen(canvas, tooltip, state.viewport, {
      showRange: (from, to) => range.show(from, to),
      zoom: (factor, at) => range.zoom(factor, at),
      pan: (part) => range.pan(part),
      scroll: (top) => range.scroll(top),
      hitTest: (x, y) => this.hitTest(x, y),
      zoomTo: (lifetime) => range.zoomTo(lifetime),
      zoomToSelected: () => range.zoomTo(state.selected),
      selectNext: (by) => selection.selectNext(by),
      selectInOtherLane: (by) => selection.selectInOtherLane(by),
      nextInstant: (by) => selection.nextInstant(by),
      toggleGroup: (group) => filter.toggleGroup(group),
      toggleAll: () => filter.toggleAll(),
      select: (lifetime) => selection.select(lifetime),
      goTo: (instant) => selection.goTo(instant),
      goHome: () => range.goHome(),
      runLength: () => state.runLength(),
      thumb: () => Painter.thumb(state.layout.rows.length, state.viewport),
      details: () => this.aside.focus(),
      band: (next) => {
        if (this.band || next) this.schedulePaint();
        this.band = next;
      },
      describe: (hit, tooltip) => {
        if (!state.lifetimes) return false;
        const group = state.layout.groups[hit.row?.head ? hit.row.group : -1] ?? null;
        return tell(tooltip, state.data, state.lifetimes, group, hit);
      },
    });
  }

  /** What is at a position of the canvas. @param {number} x @param {number} y @returns {import('./input.js').Hit} */
  hitTest(x, y) {
    const { lifetimes, viewport, layout } = this.state;
    const nothing = { row: null, lifetime: -1, instant: null };
    if (!lifetimes || x > viewport.width - BAR) return nothing;
    const near = this.painter.drawn.findLast((mark) => Math.hypot(mark.x - x, mark.y - y) <= NEAR);
    if (near) return { ...nothing, instant: near.instant };
    if (y < TOP) return nothing;
    const row = layout.rows[Math.floor((y - TOP + viewport.top) / ROW)] ?? null;
    if (!row || row.head || x < viewport.gutter) return { ...nothing, row };
    const time = (/** @type {number} */ x) =>
      viewport.from + ((x - viewport.gutter) / (viewport.width - viewport.gutter - BAR)) * (viewport.to - viewport.from);
    return { row, lifetime: nearest(lifetimes, row, time(x - REACH), time(x), time(x + REACH)), instant: null };
  }

  // --- Drawing --------------------------------------------------------------------------------------------

  paint() {
    this.paintDue = false;
    const { lifetimes, chosen, layout, viewport, selected, instant, instants, ofLifetime, data } = this.state;
    if (!lifetimes || viewport.width === 0) return;
    this.painter.paint({
      lifetimes,
      chosen,
      layout,
      viewport,
      selected,
      instant,
      instants,
      of: ofLifetime,
      mode: (group) => this.filter.mode(group),
      band: this.band,
      called: (process) => called(data.run, process),
      short: (process) => short(data.run, process),
    });
  }

  schedulePaint() {
    if (this.paintDue) return;
    this.paintDue = true;
    requestAnimationFrame(() => this.paint());
  }

  /** Updates the address and the table after a pause. */
  scheduleUpdate() {
    clearTimeout(this.updateTimer);
    this.updateTimer = setTimeout(() => {
      if (here().view !== 'timeline') return;
      const { viewport, begin, following, selected, instant } = this.state;
      const [from, to] = [Math.round(viewport.from), Math.round(viewport.to)];
      const atHome = Math.abs(from - begin.from) <= 1 && (following || Math.abs(to - begin.to) <= 1);
      amend({
        from: atHome ? null : from,
        to: atHome || following ? null : to,
        top: viewport.top > 0 ? Math.round(viewport.top / ROW) : null,
      });
      this.controls.updateRange();
      this.tableOffset = 0;
      this.drawTable();
      if (selected < 0 && !instant) this.drawAside();
    }, PAUSE);
  }

  drawAside() {
    const { state, range, selection, aside } = this;
    const { data, lifetimes, selected, instant, chosen, viewport } = state;
    const acts = {
      zoom: () => range.zoomTo(state.selected),
      drop: () => {
        selection.select(-1);
        this.canvas.focus();
      },
      select: (/** @type {number} */ lifetime) => selection.select(lifetime),
      perfetto: this.actions.perfetto,
    };
    aside.dataset.lifetime = state.nameOf(selected) ?? '';
    if (selected >= 0 && lifetimes) detail(aside, data, lifetimes, selected, acts);
    else if (instant && lifetimes) aboutInstant(aside, data, instant, acts);
    else {
      const keys = KEYS.filter(([names]) => !names.startsWith('Shift')).slice(0, 7);
      nothingSelected(aside, lifetimes, chosen, viewport, keys);
    }
  }

  drawTable() {
    const { data, lifetimes, chosen, viewport, selected } = this.state;
    if (!this.table.open || !lifetimes) return;
    const shown = chosen.filter((one) => lifetimes.to[one] >= viewport.from && lifetimes.from[one] <= viewport.to);
    swap(
      this.rowsOfTable,
      shown.length === 0
        ? el('p', { class: 'empty' }, 'No lifetime is visible.')
        : lifetimeTable('The visible part', data, lifetimes, shown, {
            offset: Math.min(this.tableOffset, Math.max(0, shown.length - 1)),
            select: (lifetime) => this.selection.select(lifetime),
            selected,
            size: PAGE,
            turn: (offset) => {
              this.tableOffset = offset;
              this.drawTable();
            },
          }),
    );
  }

  measure() {
    const { viewport, layout } = this.state;
    const width = Math.floor(this.canvasArea.clientWidth);
    const room = Math.max(240, Math.min(innerHeight - 250, 1000));
    viewport.width = width;
    viewport.gutter = width < 560 ? 84 : width < 900 ? 180 : 240;
    viewport.height = Math.min(room, Math.max(TOP + layout.rows.length * ROW + 8, 160));
    this.range.scroll(viewport.top);
  }

  // --- What is shown --------------------------------------------------------------------------------------

  applyFilter() {
    this.filter.apply();
    const { lifetimes, chosen } = this.state;
    if (!lifetimes) return;
    const of = chosen.length < lifetimes.total ? ` of ${figure(lifetimes.total)}` : '';
    const first = lifetimes.size < lifetimes.total && lifetimes.size === chosen.length ? ' (the first)' : '';
    this.head.textContent = `${count(chosen.length, 'lifetime')}${of}${first}`;
  }

  /** Shows the range in the address. */
  showAddressed() {
    const { state } = this;
    this.range.show(Number(state.value('from') || 0), Number(state.value('to') || state.runLength()));
  }

  /** Applies the range and the selection in the address. */
  applyRoute() {
    const { state } = this;
    const { lifetimes } = state;
    const value = (/** @type {string} */ name) => state.value(name);
    if (value('from') || value('to')) this.showAddressed();
    else this.range.goHome();
    this.controls.updateRange();
    if (!lifetimes) return;
    const meant = value('sel') ? lifetimes.named(value('sel')) : value('at') ? lifetimes.known(value('at')) : -1;
    if (!value('finding')) state.instant = null;
    this.selection.select(meant, { step: false });
    if (value('top')) this.range.scroll(Number(value('top')) * ROW);
  }

  /** Shows lifetimes, the first ones or all. @param {import('./lifetimes.js').Lifetimes} some */
  take(some) {
    const { state } = this;
    const kept = state.nameOf(state.selected);
    const begun = state.lifetimes !== null;
    state.lifetimes = some;
    state.begin = home(some.activity(), state.runLength());
    if (state.data.run.running) state.begin.to = state.runLength();
    state.selected = kept ? some.named(kept) : -1;
    this.applyFilter();
    if (!begun) this.applyRoute();
    else if (kept && state.selected >= 0) this.drawAside();
  }

  async load() {
    const { state } = this;
    let shown = state.lifetimes !== null;
    try {
      const all = await fetchLifetimes(state.data.run, (some) => {
        if (shown) return;
        shown = true;
        this.take(some);
      });
      const wanted = state.selected < 0 && (state.value('sel') || state.value('at'));
      const wasHome = this.range.isHome();
      this.take(all);
      if (wanted) this.applyRoute();
      else if (wasHome) this.range.goHome();
      if (all.total === 0) this.head.textContent = 'No process got a handle.';
    } catch (error) {
      if (!state.lifetimes) this.head.textContent = 'The handles cannot be shown.';
      this.actions.showError(error);
    }
    this.canvasArea.setAttribute('data-ready', 'true');
  }

  // --- What app.js calls ----------------------------------------------------------------------------------

  /** @param {import('./run.js').RunData} next */
  refresh(next) {
    const { state } = this;
    state.data = next;
    state.viewport.last = state.runLength();
    if (state.following) {
      state.viewport.to = state.runLength();
      this.schedulePaint();
    }
    this.controls.update(next);
    this.load();
  }

  /** @param {import('./router.js').Route} route */
  follow(route) {
    const { state } = this;
    const before = state.query;
    state.query = route.query;
    const changed = (/** @type {string[]} */ names) => names.some((name) => (before.get(name) ?? '') !== state.value(name));
    if (changed(['q', 'kind', 'process', 'rule', 'finding'])) {
      this.controls.update(state.data);
      this.applyFilter();
    } else if (changed(['lanes', 'open', 'closed', 'all'])) this.filter.arrange();
    this.applyRoute();
  }

  repaint() {
    this.painter.repaint();
    this.schedulePaint();
  }

  close() {
    this.sizes.disconnect();
    this.unlisten();
    clearTimeout(this.updateTimer);
  }
}
