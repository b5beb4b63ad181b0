/**
 * Moves the visible part of the timeline: zooming, panning and scrolling.
 */
import { ROW, TOP } from './measures.js';
import { CLOSEST, setRange } from './range.js';

export class TimelineRange {
  /** @param {import('./timeline_state.js').TimelineState} state @param {() => void} moved */
  constructor(state, moved) {
    this.state = state;
    this.moved = moved;
  }

  /** @param {number} from @param {number} to */
  show(from, to) {
    const { state } = this;
    setRange(state.viewport, from, to, state.runLength());
    state.following = state.data.run.running && state.viewport.to >= state.runLength();
    this.moved();
  }

  /** Shows a length of time with a moment in the middle. @param {number} middle @param {number} length */
  showAround(middle, length) {
    this.show(middle - length / 2, middle + length / 2);
  }

  showAll() {
    this.show(0, this.state.runLength());
  }

  goHome() {
    const { from, to } = this.state.begin;
    this.show(from, to);
  }

  isHome() {
    const { viewport, begin } = this.state;
    return viewport.from === begin.from && viewport.to === begin.to;
  }

  /** @param {boolean} on */
  follow(on) {
    if (on) this.show(this.state.viewport.from, this.state.runLength());
    else this.state.following = false;
  }

  /** @param {number} factor @param {number} [at]  the fixed point, as a fraction of the width */
  zoom(factor, at = 0.5) {
    const { viewport } = this.state;
    const length = viewport.to - viewport.from;
    const next = Math.min(Math.max(length * factor, CLOSEST), this.state.runLength());
    const from = viewport.from + (length - next) * at;
    this.show(from, from + next);
  }

  /** @param {number} part  of the visible range */
  pan(part) {
    const { from, to } = this.state.viewport;
    this.show(from + (to - from) * part, to + (to - from) * part);
  }

  /** @param {number} top @returns {boolean} whether it scrolled */
  scroll(top) {
    const { viewport, layout } = this.state;
    const before = viewport.top;
    viewport.top = Math.min(Math.max(top, 0), Math.max(0, layout.rows.length * ROW - (viewport.height - TOP)));
    this.moved();
    return viewport.top !== before;
  }

  /** Scrolls to a row if it is not visible. @param {number} row */
  revealRow(row) {
    const { top, height } = this.state.viewport;
    const seen = height - TOP;
    if (row >= 0 && (row * ROW < top || (row + 2) * ROW > top + seen)) this.scroll(row * ROW - seen / 3);
  }

  /** Moves to a lifetime if it is not in the visible range. @param {number} lifetime */
  revealTime(lifetime) {
    const { lifetimes, viewport } = this.state;
    if (!lifetimes) return;
    const end = Math.min(lifetimes.to[lifetime], this.state.runLength());
    if (end < viewport.from || lifetimes.from[lifetime] > viewport.to) {
      this.showAround((lifetimes.from[lifetime] + end) / 2, viewport.to - viewport.from);
    }
  }

  /** @param {number} lifetime */
  zoomTo(lifetime) {
    const { lifetimes } = this.state;
    if (!lifetimes || lifetime < 0) return;
    const end = Math.min(lifetimes.to[lifetime], this.state.runLength());
    const margin = Math.max((end - lifetimes.from[lifetime]) * 0.15, CLOSEST);
    this.show(lifetimes.from[lifetime] - margin, end + margin);
  }
}
