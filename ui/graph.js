/**
 * Sharing between a few processes, as a graph. The same data is also in a table.
 *
 * @typedef {{from: number, to: number, shares: import('./api.js').Share[], handles: number, opens: number, bytes: number, still: number,
 *   worst: string | null}} Edge  `worst` is the highest severity of the findings between the two
 */
import { drawingWidth, el, svg } from './dom.js';
import { bytes, count, ended, figure, file, size } from './format.js';
import { grid } from './grid.js';
import { href } from './router.js';
import { called, inOrder, processOf, short } from './run.js';

/** More processes that share are drawn as a matrix: see matrix.js. */
export const GRAPH_UP_TO = 16;
/** With more edges than this, labels would overlap and are omitted; a ring has less room. */
const LABELS_UP_TO = { columns: 10, ring: 5 };

/**
 * Adds up the shares of all kinds between two processes.
 * @param {import('./run.js').RunData} data
 * @returns {Edge[]}
 */
export function edges({ run, check, stats }) {
  /** @type {import('./api.js').Share[]} */
  const shares = stats.shares ?? [];
  // Findings are sorted by severity: the first one between two processes is the worst.
  /** @type {Map<string, string>} */
  const worst = new Map();
  for (const { excuse, severity, process, other, others = [] } of check.findings) {
    const here = processOf(run, process)?.index;
    if (excuse || here === undefined) continue;
    for (const side of [other, ...others]) {
      const there = side && processOf(run, side)?.index;
      for (const key of [`${here} ${there}`, `${there} ${here}`]) if (!worst.has(key)) worst.set(key, severity);
    }
  }
  /** @type {Map<string, Edge>} */
  const found = new Map();
  for (const share of shares) {
    const [from, to] = [share.producer.process, share.consumer.process];
    const edge = found.get(`${from} ${to}`) ?? { from, to, shares: [], handles: 0, opens: 0, bytes: 0, still: 0, worst: null };
    edge.worst = worst.get(`${from} ${to}`) ?? null;
    edge.shares.push(share);
    edge.handles += share.handles;
    edge.opens += share.opens;
    edge.bytes += share.bytes;
    edge.still += share.open;
    found.set(`${from} ${to}`, edge);
  }
  return [...found.values()];
}

/** The marker of a process with findings: a triangle, a diamond or a dot, as everywhere on the page. */
const FLAGS = { error: 'm0 -4.5l4.5 8h-9z', warning: 'm0 -5l5 5l-5 5l-5 -5z', note: 'm-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z' };

/** The weight of an edge among the others, from 0 to 1: by bytes if there are any, otherwise by opens. */
export function weigher(/** @type {Edge[]} */ all) {
  const measure = (/** @type {Edge} */ edge) => Math.log2(1 + (all.some((edge) => edge.bytes > 0) ? edge.bytes : edge.opens));
  const most = Math.max(...all.map(measure), 1);
  return (/** @type {Edge} */ edge) => measure(edge) / most;
}

export const describe = (/** @type {Edge} */ edge) =>
  [count(edge.opens, 'open'), edge.bytes > 0 && bytes(edge.bytes), edge.still > 0 && `${figure(edge.still)} left open`]
    .filter(Boolean)
    .join(', ');

/**
 * The position of each process: producers left and consumers right, or all in a ring if some are both.
 * @param {Edge[]} drawn
 * @param {number[]} order  of all processes, by rank
 * @returns {{places: Map<number, {x: number, y: number, side: 'start' | 'end' | 'middle'}>, width: number, height: number, columns: boolean}}
 */
function layout(drawn, order) {
  const by = (/** @type {number} */ a, /** @type {number} */ b) => order.indexOf(a) - order.indexOf(b);
  const producers = [...new Set(drawn.map((edge) => edge.from))].sort(by);
  // Consumers in the order of their producers, so that few lines cross.
  const middle = (/** @type {number} */ consumer) => {
    const from = drawn.filter((edge) => edge.to === consumer).map((edge) => producers.indexOf(edge.from));
    return from.reduce((sum, index) => sum + index, 0) / from.length;
  };
  const consumers = [...new Set(drawn.map((edge) => edge.to))].sort((a, b) => middle(a) - middle(b) || by(a, b));
  const width = drawingWidth();
  // Room for the labels beside the outermost processes.
  const beside = width < 480 ? 100 : 150;
  const places = new Map();
  if (!producers.some((process) => consumers.includes(process))) {
    const height = Math.max(producers.length, consumers.length) * 54 + 10;
    for (const [column, x] of /** @type {const} */ ([
      [producers, beside],
      [consumers, width - beside],
    ])) {
      const step = height / column.length;
      column.forEach((process, index) =>
        places.set(process, { x, y: step * (index + 0.5), side: x < width / 2 ? 'end' : 'start' }),
      );
    }
    return { places, width, height, columns: true };
  }
  const ring = [...new Set([...producers, ...consumers])].sort(by);
  const height = Math.min(480, 200 + ring.length * 12);
  ring.forEach((process, index) => {
    const angle = (index / ring.length) * 2 * Math.PI - Math.PI / 2;
    const [x, y] = [width / 2 + Math.cos(angle) * (width / 2 - beside + 15), height / 2 + Math.sin(angle) * (height / 2 - 42)];
    const side = Math.abs(Math.cos(angle)) < 0.15 ? 'middle' : Math.cos(angle) > 0 ? 'start' : 'end';
    places.set(process, { x, y, side });
  });
  return { places, width, height, columns: false };
}

/**
 * An edge, and its label if there is room for labels.
 * @param {import('./run.js').Run} run
 * @param {Edge} edge
 * @param {ReturnType<typeof layout>} where
 * @param {{thickness: number, labels: boolean}} how
 */
function line(run, edge, { places, height, columns }, { thickness, labels }) {
  const [a, b] = [places.get(edge.from), places.get(edge.to)];
  if (!a || !b) return null;
  const bow = columns ? 0 : 0.22;
  const loop = edge.from === edge.to;
  const [mx, my] = [
    (a.x + b.x) / 2 + (height / 2 - (a.y + b.y) / 2) * bow * 0.2 + (b.y - a.y) * bow,
    (a.y + b.y) / 2 - (b.x - a.x) * bow,
  ];
  const long = Math.hypot(b.x - mx, b.y - my) || 1;
  // The arrow's tip is at the rim of the circle, not at its centre.
  const [ex, ey] = [b.x - ((b.x - mx) / long) * 11, b.y - ((b.y - my) / long) * 11];
  const d = loop
    ? `M${a.x - 6} ${a.y - 6}c-26 -34 38 -34 14 -3`
    : `M${a.x} ${a.y}Q${mx.toFixed(1)} ${my.toFixed(1)} ${ex.toFixed(1)} ${ey.toFixed(1)}`;
  const text = `${called(run, edge.from)} to ${called(run, edge.to)}: ${describe(edge)}`;
  return [
    svg(
      'path',
      {
        class: ['edge', edge.still > 0 && 'still', edge.worst].filter(Boolean).join(' '),
        d,
        'stroke-width': thickness.toFixed(1),
        'marker-end': 'url(#tip)',
      },
      svg('title', {}, text),
    ),
    labels &&
      !loop &&
      svg(
        'text',
        {
          class: 'share',
          x: a.x * 0.25 + mx * 0.5 + b.x * 0.25,
          y: a.y * 0.25 + my * 0.5 + b.y * 0.25 - 6,
          'text-anchor': 'middle',
        },
        describe(edge),
      ),
  ];
}

/**
 * How many findings each process has, and the worst of them.
 * @param {import('./run.js').RunData} data
 */
function findingsOf({ run, check }) {
  // Findings are sorted by severity: the first one of a process is its worst.
  /** @type {Map<number, {number: number, worst: string}>} */
  const findings = new Map();
  for (const found of check.findings) {
    const process = processOf(run, found.process);
    if (!process || found.excuse) continue;
    const { number = 0, worst = found.severity } = findings.get(process.index) ?? {};
    findings.set(process.index, { number: number + 1, worst });
  }
  return findings;
}

/** @param {import('./run.js').RunData} data @param {Edge[]} drawn */
function picture(data, drawn) {
  const { run } = data;
  const order = inOrder(run).map(({ index }) => index);
  const where = layout(drawn, order);
  const { places, width, height, columns } = where;
  const weight = weigher(drawn);
  const labels = drawn.length <= LABELS_UP_TO[columns ? 'columns' : 'ring'];
  const lines = drawn.map((edge) => line(run, edge, where, { thickness: 1.5 + 3.5 * weight(edge), labels }));
  const findings = findingsOf(data);
  const nodes = [...places].map(([process, { x, y, side }]) => {
    const shift = { start: 15, end: -15, middle: 0 }[side];
    const raise = side === 'middle' ? (y < height / 2 ? -24 : 22) : -1;
    const bad = findings.get(process);
    const seen = run.processes[process];
    return svg(
      'a',
      { href: href('timeline', '', { process }), class: bad ? `node ${bad.worst}` : 'node', 'data-key': `node-${process}` },
      svg(
        'title',
        {},
        `${called(run, process)}: ${seen ? ended(seen.ended) : ''}${bad ? `, ${count(bad.number, 'finding')}` : ''}`,
      ),
      svg('circle', { cx: x, cy: y, r: 8 }),
      bad && svg('path', { class: 'flag', d: `M${x} ${y}${FLAGS[/** @type {'note'} */ (bad.worst)]}` }),
      svg('text', { x: x + shift, y: y + raise, 'text-anchor': side }, short(run, process)),
      svg(
        'text',
        { x: x + shift, y: y + raise + 13, 'text-anchor': side, class: 'faint' },
        seen ? file(seen.executable).slice(0, width < 480 ? 13 : 20) : 'no trace',
      ),
    );
  });
  return svg(
    'svg',
    {
      viewBox: `0 0 ${width} ${height}`,
      class: 'graph',
      role: 'group',
      'aria-label': `${count(places.size, 'process', 'processes')} that share handles`,
    },
    svg(
      'defs',
      {},
      svg(
        'marker',
        {
          id: 'tip',
          viewBox: '0 0 8 8',
          refX: 7,
          refY: 4,
          markerWidth: 9,
          markerHeight: 9,
          orient: 'auto',
          markerUnits: 'userSpaceOnUse',
        },
        svg('path', { d: 'M0 0L8 4L0 8z' }),
      ),
    ),
    lines,
    nodes,
  );
}

/** What edges or cells mean. @param {string[]} others  what is no colour */
export const legend = (...others) =>
  el(
    'p',
    { class: 'legend' },
    [
      ['memory', 'opened and closed'],
      ['found', 'left open, or with a warning'],
      ['error', 'with an error'],
    ].map(([name, text]) => el('span', {}, el('i', { class: name }), text)),
    others.map((text) => el('span', {}, text)),
  );

/** @param {import('./run.js').RunData} data */
export function table({ run, stats }) {
  /** @type {import('./api.js').Share[]} */
  const shares = stats.shares ?? [];
  const shown = shares.slice(0, 500);
  return el(
    'details',
    { 'data-key': 'shares-table' },
    el('summary', {}, `As a table (${count(shares.length, 'row')})`),
    grid(
      'Sharing between processes',
      [
        { name: 'from', cell: (share) => called(run, share.producer.process) },
        { name: 'to', cell: (share) => called(run, share.consumer.process) },
        { name: 'what', cell: (share) => share.kind },
        { name: 'handles', number: true, cell: (share) => figure(share.handles) },
        { name: 'opens', number: true, cell: (share) => figure(share.opens) },
        { name: 'bytes', number: true, cell: (share) => size(share.bytes) },
        { name: 'left open', number: true, cell: (share) => figure(share.open) },
      ],
      shown,
    ),
    shares.length > shown.length &&
      el('p', { class: 'faint' }, `The first ${shown.length} are shown; urscope stats --format json prints all.`),
  );
}

/**
 * @param {import('./run.js').RunData} data
 * @returns {Node}
 */
export function graph(data) {
  const { run, stats } = data;
  /** @type {import('./api.js').Share[]} */
  const shares = stats.shares ?? [];
  if (shares.length === 0) return el('p', { class: 'empty' }, 'No process opened a handle of another process.');
  const among = new Set(shares.flatMap((share) => [share.producer.process, share.consumer.process]));
  const idle = run.processes.length - [...among].filter((process) => run.processes[process]).length;
  return el(
    'figure',
    {},
    picture(data, edges(data)),
    legend('→ from the producer to the consumer', 'thick: many bytes', '▲ error ◆ warning ● note in a process'),
    idle > 0 && el('p', { class: 'caption faint' }, `${count(idle, 'more process', 'more processes')} shared nothing.`),
    table(data),
  );
}
