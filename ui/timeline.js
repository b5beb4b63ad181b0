/**
 * The timeline of handle lives: zoomed, panned, filtered and selected by hand or by keys. What it shows stands in a table,
 * too. painter.js paints it, lanes.js says where what is.
 */
import { el, say, swap } from './dom.js';
import { count, figure } from './format.js';
import { byProcess, byRule, check, choice, search } from './filters.js';
import { KEYS, STEP, handle } from './input.js';
import { after, lay } from './lanes.js';
import { PAGE, detail, lifeTable, spoken } from './lifetime.js';
import { fetchLives } from './lifetimes.js';
import { BAR, Painter, ROW, TOP } from './painter.js';
import { amend, choose, here } from './router.js';
import { SEVERITIES, called, short } from './run.js';

/** Nothing is closer than this, in nanoseconds from one edge to the other. */
const CLOSEST = 200;
/** With more exports than this, those that follow each other share lanes. */
const CROWD = 400;
/** How far from a life a click may be, in pixels. */
const NEAR = 4;

/**
 * @param {HTMLElement} place
 * @param {import('./run.js').World} first
 * @param {import('./router.js').Route} route
 * @param {any} actions
 */
export function open(place, first, route, actions) {
  let world = first;
  let query = route.query;
  /** @type {import('./lifetimes.js').Lives | null} */
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
    class: 'lanes',
    tabindex: '0',
    role: 'application',
    'aria-roledescription': 'timeline',
    'aria-label': 'Lives of handles over time',
    'aria-describedby': 'timeline-keys',
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
  swap(
    place,
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
        el('span', {}, 'thick: a handle, from get to put; thin, under it: an opening'),
        el('span', {}, '▲ error ◆ warning ● note'),
        el(
          'span',
          { class: 'tools' },
          tool('−', 'Zoom out', () => zoom(STEP)),
          tool('+', 'Zoom in', () => zoom(1 / STEP)),
          tool('Whole run', 'The whole run', () => see(0, whole())),
        ),
      ),
      el('div', { class: 'timeline' }, stage, aside),
      table,
    ),
  );

  const painter = new Painter(canvas);
  const severity = (/** @type {number} */ life) =>
    SEVERITIES.find((grade) => lives?.findings.get(life)?.some((index) => world.check.findings[index]?.severity === grade)) ??
    'note';
  /** @type {{time: number, severity: string}[]} */
  let findings = [];
  let due = false;

  function paint() {
    due = false;
    if (!lives || sight.width === 0) return;
    painter.paint({
      lives,
      layout,
      sight,
      selected,
      worst: severity,
      closed,
      findings,
      called: (process) => called(world.run, process),
      short: (process) => short(world.run, process),
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
    for (const [name, ns] of [
      ['From', sight.from],
      ['To', sight.to],
    ]) {
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
      amend({
        from: all ? null : Math.round(sight.from),
        to: all || along ? null : Math.round(sight.to),
        top: sight.top > 0 ? Math.round(sight.top / ROW) : null,
      });
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
  const pan = (/** @type {number} */ part) =>
    see(sight.from + (sight.to - sight.from) * part, sight.to + (sight.to - sight.from) * part);
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
    zoom: () => closeUp(selected),
    drop: () => {
      select(-1);
      canvas.focus();
    },
    select: (/** @type {number} */ life) => select(life),
    perfetto: actions.perfetto,
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
      swap(
        aside,
        el('h2', {}, 'Nothing is selected'),
        el('p', {}, 'A click on a life shows its story. By keys, when the timeline has the focus:'),
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
    const time = (/** @type {number} */ x) =>
      sight.from + ((x - sight.gutter) / (sight.width - sight.gutter - BAR)) * (sight.to - sight.from);
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

  handle(canvas, tip, sight, {
    see,
    zoom,
    pan,
    scroll,
    hit,
    closeUp,
    closer: () => closeUp(selected),
    beside,
    across,
    fold,
    select,
    whole,
    rows: () => layout.rows.length,
    details: () => aside.focus(),
    spoken: (life) => (lives ? spoken(lives, life, world.run) : ''),
  });

  // --- What is shown --------------------------------------------------------------------------------------

  const value = (/** @type {string} */ name) => query.get(name) ?? '';
  /** @type {import('./filters.js').Want} */
  function want(changes) {
    choose(query, changes);
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
    swap(
      form,
      search('Search', value('q'), (q) => want({ q }), 'address, fingerprint'),
      choice('Kind', value('kind'), ['memory', ['physical', 'physical memory'], 'event'], (kind) => want({ kind })),
      byProcess(world, value('process'), want),
      byRule(world, value('rule'), want),
      choice(
        'Lanes',
        value('lanes'),
        [
          ['each', 'one for each handle'],
          ['packed', 'shared one after the other'],
        ],
        (lanes) => want({ lanes }),
        'automatic',
      ),
      seconds('From', sight.from, (ns) => see(ns, Math.max(sight.to, ns + CLOSEST))),
      seconds('To', sight.to, (ns) => see(Math.min(sight.from, ns - CLOSEST), ns)),
      world.run.running &&
        check('Follow the run', along, (on) => {
          if (on) see(sight.from, whole());
          else along = false;
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

  /** Finds a lane for each life that is asked for. */
  function arrange() {
    if (!lives) return;
    const kept = selected >= 0 ? lives.name(selected) : '';
    chosen = lives.chosen(
      { kind: value('kind'), process: value('process'), rule: value('rule'), q: value('q') },
      world.check.findings,
    );
    let exports = 0;
    if (!value('lanes')) exports = new Set(Array.from(chosen, (life) => /** @type {any} */ (lives).export[life])).size;
    layout = lay(lives, chosen, { packed: value('lanes') === 'packed' || exports > CROWD, closed });
    findings = world.check.findings
      .filter(
        (/** @type {any} */ found) =>
          !found.excuse && (!value('rule') || value('rule') === 'any' || found.rule === value('rule')),
      )
      .slice(0, 2000)
      .map((/** @type {any} */ found) => ({ time: found.time_ns, severity: found.severity }));
    head.textContent = `${count(chosen.length, 'life', 'lives')}${chosen.length < lives.total ? ` of ${figure(lives.total)}` : ''}${lives.size < lives.total && lives.size === chosen.length ? ' (the first)' : ''}`;
    selected = kept ? lives.named(kept) : -1;
    measure();
    tabulate();
    soon();
  }
  function tabulate() {
    if (!table.open || !lives) return;
    const shown = chosen.filter(
      (life) => /** @type {any} */ (lives).to[life] >= sight.from && /** @type {any} */ (lives).from[life] <= sight.to,
    );
    swap(
      rowsOfTable,
      shown.length === 0
        ? el('p', { class: 'empty' }, 'Nothing is in sight.')
        : lifeTable('What is in sight', world, lives, shown, {
            offset: Math.min(tableOffset, Math.max(0, shown.length - 1)),
            select: acts.select,
            selected,
            size: PAGE,
            turn: (offset) => {
              tableOffset = offset;
              tabulate();
            },
          }),
    );
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
    const take = (/** @type {import('./lifetimes.js').Lives} */ some) => {
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
