// Tests of the parts of the page that need no browser: node tests/browser/units.mjs

import assert from 'node:assert/strict';

import { Density } from '../../ui/density.js';
import { listed, roundStep, tickLabel, ticks } from '../../ui/format.js';
import { heldBySite } from '../../ui/in_view.js';
import { FOUND, OPEN, SHUT, grouped, layOut } from '../../ui/lanes.js';
import { visible } from '../../ui/marks.js';
import { home, setRange } from '../../ui/range.js';

/** Lifetimes as the page keeps them, from rows of [process, opening, export, from, to]. */
function lifetimes(rows, found = []) {
  const column = (at) => Float64Array.from(rows, (row) => row[at]);
  const unknown = Float64Array.from(rows, () => Infinity);
  return {
    size: rows.length,
    process: Int32Array.from(column(0)),
    opening: Uint8Array.from(column(1)),
    export: column(2),
    from: column(3),
    to: column(4),
    allocated: unknown,
    freed: unknown,
    addresses: new Uint32Array(2 * rows.length),
    siteAt: new Uint32Array(rows.length),
    findings: new Map(found.map((lifetime) => [lifetime, [0]])),
  };
}
const all = (lives) => Uint32Array.from({ length: lives.size }, (_, index) => index);

const tests = {
  'what a call site held is the most at one moment'() {
    // Two of 10 bytes overlap, a third one comes later; one is of another site, and one is out of view.
    const lives = lifetimes([
      [0, 0, 1, 0, 10],
      [0, 0, 2, 5, 20],
      [0, 0, 3, 30, 40],
      [1, 1, 1, 6, 9],
      [0, 0, 4, 90, 95],
    ]);
    lives.bytes = Float64Array.from([10, 10, 10, 10, 10]);
    lives.site = (lifetime) => (lifetime === 3 ? 'consume, b.cpp:2' : 'produce, a.cpp:1');
    assert.deepEqual(heldBySite(lives, all(lives), 0, 50), [
      { site: 'got in produce, a.cpp:1', lifetimes: 3, most: 20 },
      { site: 'opened in consume, b.cpp:2', lifetimes: 1, most: 10 },
    ]);
  },

  'numbers that follow each other are listed in short'() {
    assert.equal(listed([5, 0, 2, 1, 1]), '0-2, 5');
    assert.equal(listed([7]), '7');
  },

  'a severe mark is never hidden by others at the same place'() {
    const at = (time, severity) => ({ time, severity });
    const instants = [at(0, 'note'), at(1, 'error'), at(1, 'warning'), at(30, 'note'), at(31, 'note')];
    const shown = visible(instants, ({ time }) => time, 6);
    assert.deepEqual(shown, [instants[3], instants[1]], 'the most severe is painted last');
  },

  ticks_are_round() {
    for (const [from, to, count] of [
      [0, 279_193_696, 10],
      [44_015_123, 251_293_987, 7],
      [1_000_000_123, 1_000_000_999, 5],
      [0, 3, 8],
    ]) {
      const step = roundStep(to - from, count);
      assert.ok([1, 2, 5].includes(step / 10 ** Math.floor(Math.log10(step) + 1e-9)), `${step}`);
      for (const tick of ticks(from, to, count)) {
        assert.ok(tick >= from && tick <= to && tick % step === 0, `${tick}`);
        assert.ok(tickLabel(tick, step).length <= 16, tickLabel(tick, step));
      }
    }
    assert.equal(tickLabel(50_000_000, 50_000_000), '50 ms');
    assert.equal(tickLabel(1_500_000_000, 500_000_000), '1.5 s');
    assert.equal(tickLabel(0, 10), '0');
  },

  the_density_counts_what_overlaps() {
    const lives = lifetimes(Array.from({ length: 300 }, (_, i) => [0, 0, i, (i * 37) % 1000, ((i * 37) % 1000) + (i % 90)]));
    const density = new Density(lives, all(lives));
    const step = 1000 / 40;
    density.overlaps(0, 1000, 40).forEach((count, at) => {
      const [left, right] = [at * step, (at + 1) * step];
      const expected = all(lives).filter((one) => lives.from[one] <= right && lives.to[one] > left).length;
      assert.equal(count, expected, `part ${at}`);
    });
  },

  processes_are_in_the_order_of_ranks_and_own_what_they_exported() {
    // Process 2 exports, 0 opens it; process 1 opens something whose producer was not traced.
    const lives = lifetimes([
      [2, 0, 7, 10, 90],
      [0, 1, 7, 20, 80],
      [1, 1, -1, 30, 40],
    ]);
    const groups = grouped(lives, all(lives), [1, 2, 0]);
    assert.deepEqual(
      groups.map(({ process, members, exports }) => [process, [...members], exports]),
      [
        [1, [2], 1],
        [2, [0, 1], 1],
      ],
    );
  },

  a_process_is_shut_or_shows_the_lanes_of_findings_or_all() {
    const lives = lifetimes(
      [
        [0, 0, 0, 0, 10],
        [0, 0, 1, 0, 10],
        [1, 1, 1, 2, 10],
        [1, 0, 2, 5, 10],
      ],
      [2],
    );
    const groups = grouped(lives, all(lives), [0, 1]);
    assert.deepEqual(
      groups.map((group) => group.found),
      [1, 0],
    );
    const rows = (mode) =>
      layOut(lives, groups, { packed: false, mode, order: [0, 1] }).rows.map((row) => (row.head ? 'head' : row.lifetimes.join()));
    assert.deepEqual(
      rows(() => SHUT),
      ['head', 'head'],
    );
    assert.deepEqual(
      rows((group) => (group.found ? FOUND : SHUT)),
      ['head', '1', '2', 'head'],
    );
    assert.deepEqual(
      rows(() => OPEN),
      ['head', '0', '1', '2', 'head', '3'],
    );
  },

  a_timeline_begins_with_the_activity() {
    const begin = home({ first: 900_000, last: 1_000_000 }, 1_100_000);
    assert.deepEqual(begin, { from: 896_000, to: 1_004_000 });
    assert.deepEqual(home({ first: 10, last: 990_000 }, 1_000_000), { from: 0, to: 1_000_000 });
    assert.deepEqual(home(null, 5), { from: 0, to: 5 });
    const viewport = {};
    setRange(viewport, -50, 10, 1000);
    assert.deepEqual(viewport, { from: 0, to: 200 });
  },
};

for (const [name, test] of Object.entries(tests)) {
  try {
    test();
  } catch (error) {
    console.error(`${name}: ${error.stack}`);
    process.exitCode = 1;
  }
}
