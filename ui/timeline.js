/**
 * The timeline of handle lives: zoomed, panned, filtered and selected by hand or by keys. What it shows stands in a table,
 * too. painter.js paints it, lanes.js says where what is.
 */
import { el, say, swap } from './dom.js';
import { count, figure } from './format.js';
import { check, choice, search } from './grid.js';
import { after, lay } from './lanes.js';
import { PAGE, detail, lifeTable, spoken } from './life.js';
import { fetchLives } from './lives.js';
import { BAR, Painter, ROW, STRIP, TOP } from './painter.js';
import { amend, here } from './router.js';
import { SEVERITIES, called, short } from './run.js';

/** Nothing is closer than this, in nanoseconds from one edge to the other. */
const CLOSEST = 200;
/** A zoom by a key or a button. */
const STEP = 1.5;
/** With more exports than this, those that follow each other share lanes. */
const CROWD = 400;
/** How far from a life a click may be, in pixels. */
const NEAR = 4;

const KEYS = [
  ['+ −', 'zoom'], ['← →', 'pan'], ['↑ ↓', 'scroll the lanes'], ['N P', 'next and previous life'], ['Shift + ← → ↑ ↓', 'the life beside, in this lane or the next'],
  ['F', 'zoom to the selected life'], ['0', 'the whole run'], ['Enter', 'to the details'], ['Esc', 'deselect'],
];

/**
 * @param {HTMLElement} place
 * @param {import('./run.js').World} first
 * @param {import('./router.js').Route} route
 * @param {any} actions
 */
export function open(place, first, route, actions) {
  let world = first;
  let query = route.query;
  /** @type {import('./lives.js').Lives | null} */
  let lives = null;
  /** @type {import('./lanes.js').Layout} */
  let layout = { rows: [], rowOf: new Int32Array(0), groups: [] };
  /** @type {Uint32Array} */
  let chosen = new Uint32Array(0);
  let selected = -1;
  /** Whether the right edge goes along with the run. */
  let along = true;
  let tableOffset = 0;
  const closed = new Set((query.get('closed') ?? '').split('.').filter(Boolean).map(Number));
  const whole = () => Math.max(world.run.last_ns, 1);
  /** @type {import('./painter.js').Sight} */
  const sight = { from: 0, to: whole(), top: 0, width: 0, height: 0, gutter: 200, last: whole() };

  const canvas = el('canvas', {
    class: 'lanes', tabindex: '0', role: 'application', 'aria-roledescription': 'timeline', 'aria-label': 'Lives of handles over time', 'aria-describedby': 'timeline-keys',
  });
  const tip = el('div', { class: 'tip', hidden: true });
  const stage = el('div', { class: 'stage' }, canvas, tip);
  const form = el('div', { class: 'filters', role: 'search', 'aria-label': 'Which handles' });
  const aside = el('section', { class: 'card detail', 'aria-label': 'The selected life', tabindex: '-1' });
  const head = el('span', {});
  const table = el('details', { 'data-key': 'lives-table' }, el('summary', {}, 'What is in sight, as a table'));
  const rowsOfTable = el('div', {});
  table.append(rowsOfTable);
  const tool = (/** @type {string} */ label, /** @type {string} */ name, /** @type {() => void} */ act) =>
    el('button', { type: 'button', 'aria-label': name, title: name, onclick: act }, label);
  swap(place, el('h1', { class: 'unseen' }, 'Timeline'),
    el('section', { class: 'card', 'aria-label': 'Timeline' }, form,
      el('div', { class: 'legend' }, head,
        [['memory', 'memory'], ['physical', 'physical memory'], ['event', 'event']].map(([kind, name]) => el('span', {}, el('i', { class: kind }), name)),
        el('span', {}, 'thick: a handle, from get to put; thin, under it: an opening'),
        el('span', {}, '▲ error ◆ warning ● note'),
        el('span', { class: 'tools' }, tool('−', 'Zoom out', () => zoom(STEP)), tool('+', 'Zoom in', () => zoom(1 / STEP)), tool('Whole run', 'The whole run', () => see(0, whole())))),
      el('div', { class: 'timeline' }, stage, aside), table));

  const painter = new Painter(canvas);
  const severity = (/** @type {number} */ life) =>
    SEVERITIES.find((grade) => lives?.findings.get(life)?.some((index) => world.check.findings[index]?.severity === grade)) ?? 'note';
  /** @type {{time: number, severity: string}[]} */
  let findings = [];
  let due = false;

  function paint() {
    due = false;
    if (!lives || sight.width === 0) return;
    painter.paint({
      lives, layout, sight, selected, worst: severity, closed, findings, called: (process) => called(world.run, process), short: (process) => short(world.run, process),
    });
  }
  function soon() {
    if (due) return;
    due = true;
    requestAnimationFrame(paint);
  }

  // --- What is seen ---------------------------------------------------------------------------------------

  /** The fields that say what is in sight. */
  function edges() {
    for (const [name, ns] of [['From', sight.from], ['To', sight.to]]) {
      const field = form.querySelector(`[data-key="filter ${name}"]`);
      if (field && field !== document.activeElement) field.value = (Number(ns) / 1e9).toFixed(6);
    }
  }
  let telling = 0;
  /** The address and the table follow when the hand rests: they cost more than a frame. */
  function settle() {
    clearTimeout(telling);
    telling = setTimeout(() => {
      if (here().view !== 'timeline') return;
      const all = sight.from <= 0 && along;
      amend({ from: all ? null : Math.round(sight.from), to: all || along ? null : Math.round(sight.to), top: sight.top > 0 ? Math.round(sight.top / ROW) : null });
      edges();
      tableOffset = 0;
      tabulate();
    }, 250);
  }

  /** @param {number} from @param {number} to */
  function see(from, to) {
    const length = Math.min(Math.max(to - from, CLOSEST), whole());
    sight.from = Math.min(Math.max(from, 0), whole() - length);
    sight.to = sight.from + length;
    along = sight.to >= whole();
    soon();
    settle();
  }
  /** @param {number} factor @param {number} [at]  where it is held, as a part of the width */
  function zoom(factor, at = 0.5) {
    const length = sight.to - sight.from;
    const next = Math.min(Math.max(length * factor, CLOSEST), whole());
    const from = sight.from + (length - next) * at;
    see(from, from + next);
  }
  const pan = (/** @type {number} */ part) => see(sight.from + (sight.to - sight.from) * part, sight.to + (sight.to - sight.from) * part);
  /** @param {number} top */
  function scroll(top) {
    sight.top = Math.min(Math.max(top, 0), Math.max(0, layout.rows.length * ROW - (sight.height - TOP)));
    soon();
    settle();
  }
  /** Brings a life into sight. @param {number} life */
  function reveal(life) {
    const row = layout.rowOf[life] ?? -1;
    if (row < 0 || !lives) return;
    const seen = sight.height - TOP;
    if (row * ROW < sight.top || (row + 2) * ROW > sight.top + seen) scroll(row * ROW - seen / 3);
    const end = Math.min(lives.to[life], whole());
    if (end < sight.from || lives.from[life] > sight.to) {
      const length = sight.to - sight.from;
      see((lives.from[life] + end - length) / 2, (lives.from[life] + end + length) / 2);
    }
  }
  /** @param {number} life */
  function closeUp(life) {
    if (!lives || life < 0) return;
    const end = Math.min(lives.to[life], whole());
    const margin = Math.max((end - lives.from[life]) * 0.15, CLOSEST);
    see(lives.from[life] - margin, end + margin);
  }

  // --- What is selected -----------------------------------------------------------------------------------

  const acts = {
    zoom: () => closeUp(selected), drop: () => { select(-1); canvas.focus(); }, select: (/** @type {number} */ life) => select(life), perfetto: actions.perfetto,
  };
  /** @param {number} life @param {{step?: boolean}} [how] */
  function select(life, { step = true } = {}) {
    selected = life;
    if (step) amend({ sel: life >= 0 && lives ? lives.name(life) : null, at: null }, { step: true });
    aside.dataset.life = life >= 0 && lives ? lives.name(life) : '';
    if (life >= 0 && lives) {
      reveal(life);
      detail(aside, world, lives, life, acts);
      say(spoken(lives, life, world.run));
    } else {
      swap(aside, el('h2', {}, 'Nothing is selected'), el('p', {}, 'A click on a life shows its story. By keys, when the timeline has the focus:'),
        el('dl', { class: 'keys', id: 'timeline-keys' }, KEYS.map(([keys, does]) => [el('dt', {}, keys.split(' ').map((key) => (key === '+' && keys.startsWith('Shift') ? ' + ' : el('kbd', {}, key)))), el('dd', {}, does)])));
    }
    soon();
    tabulate();
  }
  /** The next life in the order of lanes. @param {number} by */
  function beside(by) {
    if (!lives || layout.rows.length === 0) return;
    let row = selected >= 0 ? layout.rowOf[selected] : by > 0 ? Math.floor(sight.top / ROW) : layout.rows.length;
    let at = selected >= 0 && row >= 0 ? layout.rows[row].lives.indexOf(selected) + by : by > 0 ? 0 : -1;
    row = Math.max(row, 0);
    while (row >= 0 && row < layout.rows.length && layout.rows[row].lives[at] === undefined) {
      row += by;
      at = by > 0 ? 0 : (layout.rows[row]?.lives.length ?? 0) - 1;
    }
    const next = layout.rows[row]?.lives[at];
    if (next !== undefined) select(next);
    else say(by > 0 ? 'This is the last life.' : 'This is the first life.');
  }
  /** The life nearest in time, in another lane. @param {number} by */
  function across(by) {
    if (!lives || selected < 0) return beside(by);
    for (let row = layout.rowOf[selected] + by; row >= 0 && row < layout.rows.length; row += by) {
      const lane = layout.rows[row].lives;
      if (lane.length > 0) return select(lane[Math.min(after(lives.to, lane, lives.from[selected]), lane.length - 1)]);
    }
  }
  /** What is at a place of the canvas. @param {number} x @param {number} y */
  function hit(x, y) {
    if (!lives || y < TOP || x > sight.width - BAR) return { row: null, life: -1 };
    const row = layout.rows[Math.floor((y - TOP + sight.top) / ROW)] ?? null;
    if (!row || row.head || x < sight.gutter) return { row, life: -1 };
    const time = (/** @type {number} */ x) => sight.from + ((x - sight.gutter) / (sight.width - sight.gutter - BAR)) * (sight.to - sight.from);
    const at = after(lives.to, row.lives, time(x - NEAR));
    const now = time(x);
    let best = -1;
    let distance = Infinity;
    for (let i = at; i < Math.min(at + 64, row.lives.length); i++) {
      const life = row.lives[i];
      const off = Math.max(lives.from[life] - now, now - lives.to[life], 0);
      if (lives.from[life] > time(x + NEAR)) break;
      if (off < distance) [best, distance] = [life, off];
    }
    return { row, life: best };
  }

  // --- Hands and keys -------------------------------------------------------------------------------------

  /** @param {MouseEvent} event @returns {[number, number]} */
  const where = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  /** @type {{x: number, y: number, from: number, top: number, moved: boolean, what: string} | null} */
  let drag = null;
  const centre = (/** @type {number} */ x) => {
    const middle = ((x - sight.gutter) / (sight.width - sight.gutter - BAR)) * whole();
    const half = (sight.to - sight.from) / 2;
    see(middle - half, middle + half);
  };
  canvas.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => {
    if (event.button !== 0) return;
    const [x, y] = where(event);
    canvas.setPointerCapture(event.pointerId);
    drag = { x, y, from: sight.from, top: sight.top, moved: false, what: y < STRIP ? 'strip' : x > sight.width - BAR ? 'bar' : 'lanes' };
    if (drag.what === 'strip' && x > sight.gutter) centre(x);
  });
  canvas.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
    const [x, y] = where(event);
    if (!drag) return point(x, y);
    if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > 3) drag.moved = true;
    if (!drag.moved) return;
    tip.hidden = true;
    canvas.classList.add('dragged');
    if (drag.what === 'strip') return centre(x);
    if (drag.what === 'bar') {
      const thumb = Painter.thumb(layout.rows.length, sight);
      if (thumb) scroll(drag.top + ((y - drag.y) / thumb.room) * thumb.whole);
      return;
    }
    const scale = (sight.to - sight.from) / (sight.width - sight.gutter - BAR);
    const from = drag.from - (x - drag.x) * scale;
    see(from, from + (sight.to - sight.from));
    scroll(drag.top - (y - drag.y));
  });
  canvas.addEventListener('pointerup', (/** @type {PointerEvent} */ event) => {
    const was = drag;
    drag = null;
    canvas.classList.remove('dragged');
    if (!was || was.moved || was.what !== 'lanes') return;
    const { row, life } = hit(...where(event));
    if (row?.head) fold(row.group);
    else select(life);
  });
  canvas.addEventListener('pointerleave', () => {
    tip.hidden = true;
  });
  canvas.addEventListener('pointercancel', () => {
    drag = null;
  });
  /** Says what is under the pointer. @param {number} x @param {number} y */
  function point(x, y) {
    const { life } = hit(x, y);
    tip.hidden = life < 0;
    if (life < 0 || !lives) return;
    tip.textContent = spoken(lives, life, world.run);
    tip.style.left = `${Math.max(0, Math.min(x + 12, sight.width - 300))}px`;
    tip.style.top = `${y + 60 > sight.height ? y - 44 : y + 16}px`;
  }
  canvas.addEventListener('wheel', (/** @type {WheelEvent} */ event) => {
    const [x, y] = where(event);
    const lines = event.deltaMode === 1 ? 16 : 1;
    const [dx, dy] = event.shiftKey && event.deltaX === 0 ? [event.deltaY * lines, 0] : [event.deltaX * lines, event.deltaY * lines];
    event.preventDefault();
    if (Math.abs(dx) > Math.abs(dy)) return pan(dx / sight.width);
    if (x < sight.gutter && y > TOP && !event.ctrlKey) return scroll(sight.top + dy);
    const at = (x - sight.gutter) / (sight.width - sight.gutter - BAR);
    zoom(Math.exp(Math.min(Math.max(dy, -200), 200) / 400), Math.min(Math.max(at, 0), 1));
  }, { passive: false });
  canvas.addEventListener('dblclick', (/** @type {MouseEvent} */ event) => closeUp(hit(...where(event)).life));

  /** @type {Record<string, () => void>} */
  const keys = {
    '+': () => zoom(1 / STEP), '=': () => zoom(1 / STEP), '-': () => zoom(STEP), ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
    ArrowUp: () => scroll(sight.top - 3 * ROW), ArrowDown: () => scroll(sight.top + 3 * ROW), PageUp: () => scroll(sight.top - sight.height + TOP), PageDown: () => scroll(sight.top + sight.height - TOP),
    Home: () => scroll(0), End: () => scroll(Infinity), n: () => beside(1), p: () => beside(-1), f: () => closeUp(selected), 0: () => see(0, whole()),
    Escape: () => select(-1), Enter: () => aside.focus(),
    'Shift+ArrowRight': () => beside(1), 'Shift+ArrowLeft': () => beside(-1), 'Shift+ArrowDown': () => across(1), 'Shift+ArrowUp': () => across(-1),
  };
  canvas.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = event.shiftKey && event.key.startsWith('Arrow') ? `Shift+${event.key}` : event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const act = keys[arrow];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // --- What is shown --------------------------------------------------------------------------------------

  const value = (/** @type {string} */ name) => query.get(name) ?? '';
  /** @param {Record<string, string | boolean | null>} changes */
  function want(changes) {
    amend(changes, { step: true });
    query = here().query;
    filters();
    arrange();
  }
  /** @param {number} process */
  function fold(process) {
    if (!closed.delete(process)) closed.add(process);
    amend({ closed: [...closed].join('.') }, { step: true });
    arrange();
  }
  function filters() {
    const rules = [...new Set(world.check.findings.map((/** @type {any} */ found) => found.rule))];
    const packed = value('lanes') || 'auto';
    swap(form,
      search('Search', value('q'), (q) => want({ q }), 'address, fingerprint'),
      choice('Kind', value('kind'), [['', 'all'], ['memory', 'memory'], ['physical', 'physical memory'], ['event', 'events']], (kind) => want({ kind })),
      choice('Process', value('process'), [['', 'all'], ...world.run.processes.map(({ index }) => /** @type {[string, string]} */ ([String(index), called(world.run, index)]))], (process) => want({ process })),
      choice('Findings', value('rule'), [['', 'all'], ['any', 'with findings'], ...rules.map((rule) => /** @type {[string, string]} */ ([rule, rule]))], (rule) => want({ rule })),
      choice('Lanes', packed, [['auto', 'automatic'], ['each', 'one for each handle'], ['packed', 'shared one after the other']], (lanes) => want({ lanes: lanes === 'auto' ? null : lanes })),
      seconds('From', sight.from, (ns) => see(ns, Math.max(sight.to, ns + CLOSEST))), seconds('To', sight.to, (ns) => see(Math.min(sight.from, ns - CLOSEST), ns)),
      world.run.running && check('Follow the run', along, (on) => { if (on) see(sight.from, whole()); else along = false; }));
  }
  /** @param {string} label @param {number} ns @param {(ns: number) => void} chosen */
  function seconds(label, ns, chosen) {
    return el('label', {}, `${label} (s)`, el('input', {
      type: 'number', min: '0', step: 'any', value: (ns / 1e9).toFixed(6), 'data-key': `filter ${label}`, onchange: (/** @type {any} */ event) => chosen(Number(event.target.value) * 1e9),
    }));
  }

  /** Finds a lane for each life that is asked for. */
  function arrange() {
    if (!lives) return;
    const kept = selected >= 0 ? lives.name(selected) : '';
    chosen = lives.chosen({ kind: value('kind'), process: value('process'), rule: value('rule'), q: value('q') }, world.check.findings);
    let exports = 0;
    if (!value('lanes')) exports = new Set(Array.from(chosen, (life) => /** @type {any} */ (lives).export[life])).size;
    layout = lay(lives, chosen, { packed: value('lanes') === 'packed' || exports > CROWD, closed });
    findings = world.check.findings.filter((/** @type {any} */ found) => !found.excuse && (!value('rule') || value('rule') === 'any' || found.rule === value('rule')))
      .slice(0, 2000).map((/** @type {any} */ found) => ({ time: found.time_ns, severity: found.severity }));
    head.textContent = `${count(chosen.length, 'life', 'lives')}${chosen.length < lives.total ? ` of ${figure(lives.total)}` : ''}${lives.size < lives.total && lives.size === chosen.length ? ' (the first)' : ''}`;
    selected = kept ? lives.named(kept) : -1;
    measure();
    tabulate();
    soon();
  }
  function tabulate() {
    if (!table.open || !lives) return;
    const shown = chosen.filter((life) => /** @type {any} */ (lives).to[life] >= sight.from && /** @type {any} */ (lives).from[life] <= sight.to);
    swap(rowsOfTable, shown.length === 0 ? el('p', { class: 'empty' }, 'Nothing is in sight.')
      : lifeTable('What is in sight', world, lives, shown, { offset: Math.min(tableOffset, Math.max(0, shown.length - 1)), select: acts.select, selected, size: PAGE, turn: (offset) => { tableOffset = offset; tabulate(); } }));
  }
  table.addEventListener('toggle', tabulate);

  function measure() {
    const width = Math.floor(stage.clientWidth);
    const room = Math.max(220, Math.min(innerHeight - 230, 900));
    sight.width = width;
    sight.gutter = width < 560 ? 96 : 210;
    sight.height = Math.min(room, Math.max(TOP + layout.rows.length * ROW + 8, 160));
    scroll(sight.top);
  }
  const sizes = new ResizeObserver(() => measure());
  sizes.observe(stage);

  /** Takes what the address says. */
  function obey() {
    if (value('from') || value('to')) see(Number(value('from') || 0), Number(value('to') || whole()));
    else see(0, whole());
    edges();
    if (!lives) return;
    const meant = value('sel') ? lives.named(value('sel')) : value('at') ? lives.known(value('at')) : -1;
    select(meant, { step: false });
    if (value('top')) scroll(Number(value('top')) * ROW);
  }

  async function load() {
    let shown = lives !== null;
    const take = (/** @type {import('./lives.js').Lives} */ some) => {
      const kept = selected >= 0 && lives ? lives.name(selected) : null;
      const begun = lives !== null;
      lives = some;
      selected = kept ? some.named(kept) : -1;
      arrange();
      if (!begun) obey();
      else if (kept && selected >= 0) detail(aside, world, some, selected, acts);
    };
    try {
      const all = await fetchLives(world.run.lives, (some) => {
        if (shown) return;
        shown = true;
        take(some);
      });
      const wanted = selected < 0 && (value('sel') || value('at'));
      take(all);
      if (wanted) obey();
      if (all.total === 0) head.textContent = 'No process got a handle.';
    } catch (error) {
      if (!lives) head.textContent = 'The handles cannot be shown.';
      actions.complain(error);
    }
    stage.setAttribute('data-ready', 'true');
  }

  filters();
  select(-1, { step: false });
  if (value('from') || value('to')) see(Number(value('from') || 0), Number(value('to') || whole()));
  measure();
  load();
  return {
    /** @param {import('./run.js').World} next */
    refresh(next) {
      world = next;
      sight.last = whole();
      if (along) {
        sight.to = whole();
        soon();
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
        arrange();
      }
      obey();
    },
    repaint() {
      painter.repaint();
      soon();
    },
    close() {
      sizes.disconnect();
      clearTimeout(telling);
    },
  };
}
