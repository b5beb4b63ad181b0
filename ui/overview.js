/**
 * The first view: the verdict, the findings, which processes share, what was pinned, what is held, and the processes.
 */
import { ask } from './api.js';
import { chart } from './chart.js';
import { el, announce, swap } from './dom.js';
import { badge, count, ended, figure, file, listed, size, span, when, who } from './format.js';
import { GRAPH_UP_TO, graph } from './graph.js';
import { grid } from './grid.js';
import { href } from './router.js';
import { matrix } from './matrix.js';
import { SEVERITIES, inOrder, nameOf, processOf, sentence } from './run.js';

/** How many findings of a severity are listed before "more". */
const FIRST = 50;
/** How many findings of a run are shown with their lines of source and what to do. */
const OPENED = 3;

/** @param {import('./run.js').RunData} data */
function verdict({ run, check }) {
  const counting = check.findings.filter((/** @type {any} */ found) => !found.excuse);
  const tallies = SEVERITIES.map((severity) => ({
    severity,
    number: counting.filter((/** @type {any} */ found) => found.severity === severity).length,
  }));
  const some = tallies.filter(({ number }) => number > 0);
  const worst = check.verdict.endsWith('judged')
    ? 'warning'
    : check.verdict === 'clean'
      ? 'clean'
      : (some[0]?.severity ?? 'error');
  const limits = check.limits ?? [];
  const onlyDeaths = limits.length > 0 && limits.every((/** @type {any} */ limit) => limit.cause === 'death');
  const partly = onlyDeaths ? 'Clean, but a process died' : 'Partly judged';
  const word =
    { clean: 'Clean', findings: 'Findings', 'partly-judged': partly, 'not-judged': 'Not judged' }[
      /** @type {'clean'} */ (check.verdict)
    ] ?? check.verdict;
  const worstAt = check.findings.findIndex((/** @type {any} */ found) => !found.excuse);
  const sentenceAt = worstAt >= 0 && check.verdict === 'findings' ? worstAt : -1;
  const hosts = new Set(run.processes.map((process) => process.host));
  const ipc = run.processes.reduce((sum, process) => sum + process.ipc_calls, 0);
  return el(
    'section',
    { class: `verdict ${worst}`, 'aria-labelledby': 'verdict' },
    el(
      'h1',
      { id: 'verdict' },
      sentenceAt >= 0
        ? el(
            'a',
            { href: href('finding', nameOf(check.findings, sentenceAt)), 'data-key': 'first' },
            sentence(run, check, sentenceAt),
          )
        : word,
      run.running && el('span', { class: 'faint' }, sentenceAt >= 0 ? ', so far' : ' so far'),
    ),
    el(
      'p',
      { class: 'tallies' },
      some.length > 0
        ? some.map(({ severity, number }) => el('span', { class: 'tally' }, badge(severity), ' ', figure(number)))
        : check.verdict === 'clean' && 'Calls were recorded, and no rule was violated.',
    ),
    check.reason && el('p', {}, check.reason),
    el(
      'p',
      { class: 'faint' },
      [
        count(run.processes.length, 'process', 'processes') + ranks(run),
        hosts.size > 1 && `${hosts.size} hosts`,
        `${count(run.calls, 'call')} (${figure(ipc)} IPC)`,
        count(run.lives, 'handle and opening', 'handles and openings'),
        span(run.last_ns - run.first_ns),
        `urscope ${run.urscope}`,
      ]
        .filter(Boolean)
        .join(' · '),
    ),
    run.limits.map((/** @type {string} */ limit) => el('p', { class: 'limit' }, limit)),
  );
}

/** The ranks of a run, if it has any. @param {import('./api.js').Run} run */
function ranks(run) {
  const known = run.processes.flatMap(({ rank }) => (rank === null ? [] : [rank]));
  return known.length > 1 ? ` (ranks ${listed(known)})` : '';
}

/** @param {import('./run.js').RunData} data @param {number} index */
function line({ run, check }, index) {
  /** @type {import('./run.js').Finding} */
  const found = check.findings[index];
  const name = nameOf(check.findings, index);
  return el(
    'li',
    { class: `finding ${found.severity}` },
    el(
      'a',
      { href: href('finding', name), 'data-key': `finding-${name}` },
      el(
        'span',
        { class: 'head' },
        badge(found.severity),
        ' ',
        sentence(run, check, index),
        found.count > 1 && el('span', { class: 'times' }, ` (${times(found)})`),
      ),
      el(
        'span',
        { class: 'more' },
        el('code', {}, found.rule),
        run.sentences[index]?.here && [' in ', el('code', {}, run.sentences[index].here)],
        run.sentences[index]?.there && [', there in ', el('code', {}, run.sentences[index].there)],
        ' · ',
        when(found.time_ns),
      ),
      check.findings.length <= OPENED && !found.excuse && opened(found),
    ),
  );
}

/** The lines of source of both sides, and what to do. @param {import('./run.js').Finding} found */
function opened(found) {
  const sides = [found.process, found.other, found.later].flatMap((side) => (side ? [side] : []));
  const lines = sides.flatMap(({ stack, site }) => {
    const frame = stack.find((one) => one.source && !one.wrapper);
    return site && frame?.source ? [{ line: frame.line, source: frame.source.trim() }] : [];
  });
  return [
    lines.length > 0 &&
      el(
        'span',
        { class: 'lines' },
        lines.map(({ line, source }) => el('code', { class: 'line' }, `${line} │ ${source}`)),
      ),
    el('span', { class: 'more' }, 'What to do: ', found.advice),
  ];
}

/** How often a finding occurred, and in how many processes. @param {import('./api.js').Finding} found */
function times(found) {
  const processes = new Set((found.occurrences ?? []).map(({ host, pid, executable }) => `${host} ${pid} ${executable}`)).size;
  return `${figure(found.count)} times${processes > 1 ? ` in ${figure(processes)} processes` : ''}`;
}

/** @param {import('./run.js').RunData} data */
function findings(data) {
  const { check } = data;
  const all = check.findings.map((/** @type {any} */ found, /** @type {number} */ index) => ({ found, index }));
  const list = (/** @type {{index: number}[]} */ some, /** @type {string} */ key) => [
    el(
      'ul',
      { class: 'findings' },
      some.slice(0, FIRST).map(({ index }) => line(data, index)),
    ),
    some.length > FIRST &&
      el(
        'details',
        { 'data-key': `rest-${key}` },
        el('summary', {}, `${figure(some.length - FIRST)} more`),
        el(
          'ul',
          { class: 'findings' },
          some.slice(FIRST, FIRST + 1000).map(({ index }) => line(data, index)),
        ),
      ),
  ];
  const groups = SEVERITIES.map((severity) => ({
    severity,
    some: all.filter((/** @type {any} */ { found }) => found.severity === severity && !found.excuse),
  }));
  const excused = all.filter((/** @type {any} */ { found }) => found.excuse);
  return el(
    'section',
    { class: 'card', 'aria-labelledby': 'findings' },
    el('h2', { id: 'findings' }, 'Findings'),
    all.length === 0 && el('p', { class: 'empty' }, check.verdict === 'not-judged' ? 'Nothing was judged.' : 'None.'),
    groups
      .filter(({ some }) => some.length > 0)
      .map(({ severity, some }) => [el('h3', {}, count(some.length, severity)), list(some, severity)]),
    excused.length > 0 &&
      el(
        'details',
        { 'data-key': 'excused' },
        el('summary', {}, `${figure(excused.length)} suppressed, or unchanged from the baseline`),
        list(excused, 'excused'),
      ),
  );
}

/** @param {import('./run.js').RunData} data */
function processes({ run, check }) {
  const found = new Map();
  for (const finding of check.findings.filter((/** @type {any} */ finding) => !finding.excuse)) {
    const places = finding.occurrences?.length > 0 ? finding.occurrences : [finding.process];
    const processes = new Set(places.map((/** @type {any} */ place) => processOf(run, place)?.index));
    for (const process of processes) found.set(process, (found.get(process) ?? 0) + 1);
  }
  const ranks = run.processes.some((process) => process.rank !== null);
  return el(
    'section',
    { class: 'card', 'aria-labelledby': 'processes' },
    el('h2', { id: 'processes' }, 'Processes'),
    run.processes.length === 0
      ? el('p', { class: 'empty' }, 'No process has written a trace yet.')
      : grid(
          'Processes',
          [
            {
              name: 'pid',
              cell: (process) =>
                el(
                  'a',
                  { href: href('timeline', '', { process: process.index }), title: 'its handles on the timeline' },
                  process.pid,
                ),
            },
            ranks && { name: 'rank', number: true, cell: (process) => process.rank },
            run.processes.some((process) => process.role) && { name: 'role', cell: (process) => process.role ?? '' },
            {
              name: 'program',
              cell: (process) => file(process.executable),
              hint: (process) => process.command.join(' ') || process.executable,
            },
            { name: 'host', cell: (process) => process.host },
            {
              name: 'calls',
              number: true,
              cell: (process) => el('a', { href: href('calls', '', { process: process.index }) }, figure(process.calls)),
            },
            {
              name: 'IPC',
              number: true,
              cell: (process) =>
                el('a', { href: href('calls', '', { process: process.index, ipc: 1 }) }, figure(process.ipc_calls)),
            },
            { name: 'began', cell: (process) => when(process.began_ns) },
            { name: 'ended', cell: (process) => ended(process.ended) },
            { name: 'findings', number: true, cell: (process) => figure(found.get(process.index) ?? 0) },
          ],
          inOrder(run).slice(0, 1000),
        ),
  );
}

/** With more holders at one place than this, only their number is shown. */
const NAMED_UP_TO = 3;

/** In which processes it is open: those of one place together. @param {any} held */
function holder(held) {
  const ranked = [...held.holders].sort((a, b) => (a.since.rank ?? -1) - (b.since.rank ?? -1));
  /** @type {Map<string, any[]>} */
  const places = new Map();
  for (const by of ranked) places.set(by.since.site ?? '', [...(places.get(by.since.site ?? '') ?? []), by]);
  return [...places].map(([site, all]) => {
    if (all.length <= NAMED_UP_TO) return all.map(one);
    const processes = all.every((by) => by.since.rank !== null)
      ? count(all.length, 'rank')
      : count(all.length, 'process', 'processes');
    const first = all.reduce((first, by) => Math.min(first, by.since.time_ns), Infinity);
    const title = all.map((by) => who(by.since)).join(', ');
    return el('div', { title }, processes, site && ` in ${site}`, ', since ', when(first));
  });
}

/** One that has it open. @param {any} by */
function one(by) {
  return el(
    'div',
    {},
    who(by.since),
    by.since.site && [' in ', by.since.site],
    ', since ',
    when(by.since.time_ns),
    `, as ${by.opened}`,
    by.opens > 1 && `, ${by.opens} times`,
    by.released && ', lost with its context ',
    by.released && when(by.released.time_ns),
  );
}

/**
 * What is held, with what was got and opened at the same places together.
 * @param {any[]} held
 * @returns {{kind: string, fingerprint: string, number: number, size: number | null, handles: number, got: any, holders: any[],
 *   by: Set<string>}[]}
 */
function atPlaces(held) {
  const places = new Map();
  for (const one of held) {
    const sites = [...new Set(one.holders.map((/** @type {any} */ by) => by.since.site))].sort();
    // Without a place, each stands for itself.
    const key = one.got.site ? JSON.stringify([one.kind, one.got.site, sites]) : one.fingerprint;
    const known = places.get(key);
    if (!known) {
      places.set(key, { ...one, number: 1, by: new Set([who(one.got)]) });
      continue;
    }
    known.number++;
    known.size = known.size === null && one.size === null ? null : (known.size ?? 0) + (one.size ?? 0);
    known.handles += one.handles;
    known.holders = [...known.holders, ...one.holders];
    known.by.add(who(one.got));
  }
  return [...places.values()];
}

/** What processes left of which no traced process got the handle data. @param {any} holders */
function lost(holders) {
  if (holders.lost_count === 0) return null;
  return el(
    'p',
    {},
    `${count(holders.lost_count, 'object')} left by processes that have ended, of which no traced process got the handle data: `,
    holders.lost
      .slice(0, 5)
      .map((/** @type {any} */ one, /** @type {number} */ index) => [
        index > 0 && '; ',
        `${one.object} in ${who(one.since)}, since `,
        when(one.since.time_ns),
        one.released && ', lost with its context ',
        one.released && when(one.released.time_ns),
      ]),
    holders.lost_count > 5 && '; urscope holders lists more',
  );
}

/** @param {any} holders @param {boolean} judged */
function held(holders, judged) {
  const rows = atPlaces(holders.held);
  if (rows.length === 0 && holders.lost_count > 0) return lost(holders);
  if (rows.length === 0)
    return el(
      'p',
      { class: 'empty' },
      judged ? 'Nothing: every handle was put, and every opening was closed.' : 'Nothing was shared, so nothing is held.',
    );
  return [
    lost(holders),
    grid(
      'What is held',
      [
        { name: 'what', cell: (one) => (one.number > 1 ? `${figure(one.number)} × ${one.kind}` : one.kind) },
        {
          name: 'handle data',
          cell: (one) => [
            el('a', { class: 'code', href: href('handle', one.fingerprint) }, one.fingerprint),
            one.number > 1 && ` and ${figure(one.number - 1)} more`,
          ],
        },
        { name: 'size', number: true, cell: (one) => size(one.size) },
        {
          name: 'got by',
          cell: (one) => [
            one.by.size > 1 ? count(one.by.size, 'process', 'processes') : who(one.got),
            ' ',
            when(one.got.time_ns),
          ],
        },
        { name: 'at', cell: (one) => el('span', { class: 'site', title: one.got.site }, one.got.site) },
        { name: 'not put', number: true, cell: (one) => figure(one.handles) },
        { name: 'open in', cell: holder },
      ],
      rows.slice(0, 200),
    ),
    rows.length > 200 &&
      el('p', { class: 'faint' }, `The first 200 of ${count(rows.length, 'place')}; urscope holders lists all.`),
  ];
}

/** A few processes that share are drawn as a graph, more as a matrix. @param {import('./run.js').RunData} data */
function sharing(data) {
  const shares = data.stats.shares ?? [];
  const among = new Set(shares.flatMap((/** @type {any} */ share) => [share.producer.process, share.consumer.process]));
  return among.size > GRAPH_UP_TO ? matrix(data) : graph(data);
}

/** @param {import('./run.js').RunData} data */
function gaps({ check }) {
  if (check.unseen.length === 0 && check.skipped_lines === 0) return null;
  return el(
    'section',
    { class: 'card', 'aria-labelledby': 'gaps' },
    el('h2', { id: 'gaps' }, 'What the verdict does not cover'),
    el(
      'ul',
      {},
      check.unseen.map((/** @type {string} */ text) => el('li', {}, text)),
      check.skipped_lines > 0 && el('li', {}, `${count(check.skipped_lines, 'line')} could not be used`),
    ),
  );
}

/**
 * @param {HTMLElement} container
 * @param {import('./run.js').RunData} data
 */
export function open(container, data) {
  const still = el('div', {}, el('p', { class: 'empty' }, 'Reading…'));
  const holdings = async (/** @type {import('./run.js').RunData} */ { check }) => {
    try {
      swap(still, held(await ask('holders'), check.verdict !== 'not-judged'));
    } catch (error) {
      swap(still, el('p', { class: 'empty' }, /** @type {Error} */ (error).message));
    }
  };
  const draw = (/** @type {import('./run.js').RunData} */ data) => {
    const { run } = data;
    swap(
      container,
      verdict(data),
      el(
        'div',
        { class: 'columns' },
        el('div', { class: 'stack' }, findings(data)),
        el(
          'div',
          { class: 'stack' },
          el(
            'section',
            { class: 'card', 'aria-labelledby': 'sharing' },
            el('h2', { id: 'sharing' }, 'Sharing between processes'),
            sharing(data),
          ),
          el('section', { class: 'card', 'aria-labelledby': 'pinned' }, el('h2', { id: 'pinned' }, 'Pinned bytes'), chart(data)),
        ),
      ),
      el(
        'section',
        { class: 'card', 'aria-labelledby': 'held' },
        el('h2', { id: 'held' }, run.running ? 'Held now' : 'Held at the end'),
        still,
      ),
      processes(data),
      gaps(data),
    );
  };
  let latest = data;
  draw(data);
  // What is below the fold is fetched after the first paint.
  requestAnimationFrame(() => setTimeout(() => holdings(data)));
  return {
    /** @param {import('./run.js').RunData} data */
    refresh(data) {
      latest = data;
      draw(data);
      holdings(data);
      announce(`${count(data.run.calls, 'call')}, ${count(data.check.findings.length, 'finding')}`);
    },
    /** The matrix is painted in the colours of the theme. */
    repaint() {
      draw(latest);
      holdings(latest);
    },
  };
}
