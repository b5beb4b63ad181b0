/**
 * What is selected on the timeline: a lifetime, a mistake, or nothing. The visible part moves to it, and the address has it.
 */
import { announce } from './dom.js';
import { describe } from './lifetime.js';
import { ROW } from './measures.js';
import { inOtherLane, neighbour } from './neighbours.js';
import { CLOSEST } from './range.js';
import { amend } from './router.js';

export class TimelineSelection {
  /**
   * @param {import('./timeline_state.js').TimelineState} state
   * @param {import('./timeline_range.js').TimelineRange} range
   * @param {import('./timeline_filter.js').TimelineFilter} filter
   * @param {() => void} selected
   */
  constructor(state, range, filter, selected) {
    this.state = state;
    this.range = range;
    this.filter = filter;
    this.selected = selected;
  }

  /** @param {number} lifetime @param {{step?: boolean}} [how] */
  select(lifetime, { step = true } = {}) {
    const { state } = this;
    state.selected = lifetime;
    if (lifetime < 0 && step) state.instant = null;
    if (step) amend({ sel: state.nameOf(lifetime), at: null, finding: state.nameOfFinding() }, { step: true });
    if (lifetime >= 0 && state.lifetimes) {
      this.filter.openFor(lifetime);
      this.range.revealRow(state.layout.rowOf[lifetime] ?? -1);
      this.range.revealTime(lifetime);
      announce(describe(state.lifetimes, lifetime, state.data.run));
    }
    this.selected();
  }

  /** Goes to a mistake: shows its moment, and selects the lifetime that it concerns. @param {import('./marks.js').Instant} meant */
  goTo(meant) {
    const { state } = this;
    const { viewport, begin, lifetimes, layout } = state;
    state.instant = meant;
    const [seen, home] = [viewport.to - viewport.from, begin.to - begin.from];
    if (meant.time < viewport.from || meant.time > viewport.to || seen > home / 4) {
      this.range.showAround(meant.time, Math.min(seen, Math.max(home / 8, CLOSEST)));
    }
    const own = meant.lifetimes.find((lifetime) => lifetimes?.process[lifetime] === meant.process);
    const lifetime = own ?? meant.lifetimes[0] ?? -1;
    state.selected = lifetime;
    amend({ sel: state.nameOf(lifetime), at: null, finding: state.nameOfFinding() }, { step: true });
    const row = lifetime >= 0 && layout.rowOf[lifetime] >= 0 ? layout.rowOf[lifetime] : layout.headOf[meant.process];
    this.range.revealRow(row ?? -1);
    announce(state.data.run.sentences[meant.finding]?.text ?? '');
    this.selected();
  }

  /** @param {number} by */
  nextInstant(by) {
    const { instants, instant } = this.state;
    if (instants.length === 0) return announce('There is no finding.');
    const now = instant ? instants.indexOf(instant) + by : by > 0 ? 0 : instants.length - 1;
    if (instants[now]) this.goTo(instants[now]);
    else announce(by > 0 ? 'This is the last finding.' : 'This is the first finding.');
  }

  /** @param {number} by */
  selectNext(by) {
    const { state } = this;
    if (!state.lifetimes || state.layout.groups.length === 0) return;
    this.filter.openFirst();
    const next = neighbour(state.layout, state.selected, by, Math.floor(state.viewport.top / ROW));
    if (next >= 0) this.select(next);
    else announce(by > 0 ? 'This is the last lifetime that is open.' : 'This is the first lifetime that is open.');
  }

  /** @param {number} by */
  selectInOtherLane(by) {
    const { lifetimes, layout, selected } = this.state;
    const next = lifetimes ? inOtherLane(lifetimes, layout, selected, by) : -1;
    if (next >= 0) this.select(next);
  }
}
