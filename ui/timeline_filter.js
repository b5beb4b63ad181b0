/**
 * Which lifetimes the timeline shows, and in which rows: the filters of the address, and the processes that a person opened or shut.
 */
import { FOUND, OPEN, SHUT, grouped, layOut } from './lanes.js';
import { byLifetime, instantsOf } from './marks.js';
import { choose } from './router.js';
import { finding } from './run.js';

/** With more exports than this in a process, exports that do not overlap share lanes. */
const CROWD = 400;
/** With at most this many, all lanes are open at the beginning. */
const FEW = { lifetimes: 500, exports: 24 };

export class TimelineFilter {
  /** @param {import('./timeline_state.js').TimelineState} state @param {() => void} arranged */
  constructor(state, arranged) {
    this.state = state;
    this.arranged = arranged;
    this.few = false;
  }

  /** The processes that a person has opened or shut, by their names in the address. @param {string} name */
  listed(name) {
    return new Set(this.state.value(name).split('.').filter(Boolean).map(Number));
  }

  /** How much of a process is shown. @param {import('./lanes.js').Group} group */
  mode(group) {
    const { state } = this;
    if (this.listed('open').has(group.process)) return OPEN;
    if (this.listed('closed').has(group.process) || state.value('all') === '0') return SHUT;
    if (this.few || state.value('all') === '1') return OPEN;
    return group.found > 0 ? FOUND : SHUT;
  }

  /** @param {number} process @param {number} wanted */
  setMode(process, wanted) {
    const [open, closed] = [this.listed('open'), this.listed('closed')];
    open.delete(process);
    closed.delete(process);
    (wanted === OPEN ? open : closed).add(process);
    choose(this.state.query, { open: [...open].join('.'), closed: [...closed].join('.') });
    this.arrange();
  }

  /** @param {number} at */
  toggleGroup(at) {
    const group = this.state.layout.groups[at];
    this.setMode(group.process, this.mode(group) === OPEN ? SHUT : OPEN);
  }

  toggleAll() {
    const open = this.state.layout.groups.some((group) => this.mode(group) !== OPEN);
    choose(this.state.query, { all: open ? '1' : '0', open: null, closed: null });
    this.arrange();
  }

  /** Opens the process of a lifetime that has no row. @param {number} lifetime */
  openFor(lifetime) {
    const { rowOf, groups } = this.state.layout;
    if (rowOf[lifetime] >= 0) return;
    const group = groups.find((group) => group.members.includes(lifetime));
    if (group) this.setMode(group.process, OPEN);
  }

  /** Opens the first process if none is open. */
  openFirst() {
    const { rows, groups } = this.state.layout;
    if (!rows.some((row) => !row.head)) this.setMode(groups[0].process, OPEN);
  }

  /** Groups the lifetimes that match the filters, and finds the mistakes. */
  apply() {
    const { state } = this;
    const { lifetimes, data } = state;
    if (!lifetimes) return;
    const kept = state.nameOf(state.selected);
    const value = (/** @type {string} */ name) => state.value(name);
    const wanted = { kind: value('kind'), process: value('process'), rule: value('rule'), q: value('q') };
    state.chosen = lifetimes.chosen(wanted, data.check.findings);
    const groups = grouped(lifetimes, state.chosen, state.order());
    const exports = groups.reduce((sum, group) => sum + group.exports, 0);
    this.few = state.chosen.length <= FEW.lifetimes && exports <= FEW.exports;
    state.instants = instantsOf(data, lifetimes, value('rule'));
    state.ofLifetime = byLifetime(state.instants);
    if (value('finding')) {
      const index = finding(data.check.findings, value('finding'));
      const alike = state.instants.filter((one) => one.finding === index);
      state.instant = alike.find((one) => value('at') !== '' && one.fingerprint === value('at')) ?? alike[0] ?? null;
    }
    state.layout = { ...state.layout, groups };
    state.selected = kept ? lifetimes.named(kept) : -1;
    this.arrange();
  }

  /** Lays out the groups, each as far as it is open. */
  arrange() {
    const { state } = this;
    if (!state.lifetimes) return;
    const mode = (/** @type {import('./lanes.js').Group} */ group) => this.mode(group);
    const { groups } = state.layout;
    const wanted = state.value('lanes');
    const packed = wanted === 'packed' || (!wanted && groups.some((group) => mode(group) === OPEN && group.exports > CROWD));
    state.layout = layOut(state.lifetimes, groups, { packed, mode, order: state.order() });
    this.arranged();
  }
}
