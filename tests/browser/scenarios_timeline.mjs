// The scenarios of the timeline with a pointer: see scenarios.mjs.

import assert from 'node:assert/strict';

import { ask, go, selected, settled, timeline, words } from './browser.mjs';

/** Where a moment is on the timeline, in pixels of the window. */
async function place(page, ns, y) {
  const box = await page.locator('canvas.lanes').boundingBox();
  const [from, to] = await seconds(page);
  const gutter = box.width < 560 ? 84 : box.width < 900 ? 180 : 240;
  return [box.x + gutter + ((ns / 1e9 - from) / (to - from)) * (box.width - gutter - 10), box.y + y];
}
const seconds = async (page) => [
  Number(await page.getByLabel('From (s)').inputValue()),
  Number(await page.getByLabel('To (s)').inputValue()),
];

/** Zooms, pans, filters and selects on the timeline with a pointer; another window with the same address shows the same. */
export async function shares_what_is_seen({ base, open }) {
  const run = await ask(base, 'run');
  const page = await open();
  await go(page, base, '#/timeline');
  await timeline(page);
  const canvas = page.locator('canvas.lanes');
  const box = await canvas.boundingBox();
  const range = async (page) => [await page.getByLabel('From (s)').inputValue(), await page.getByLabel('To (s)').inputValue()];

  await page.mouse.move(box.x + box.width * 0.7, box.y + 70);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -400);
  await page.keyboard.up('Control');
  await page.waitForFunction(() => location.hash.includes('from='));
  const zoomed = [Number(words(page).get('from')), Number(words(page).get('to') ?? run.last_ns)];
  assert.ok(zoomed[1] - zoomed[0] < run.last_ns * 0.7, `it is closer: ${zoomed}`);

  await page.keyboard.down('Shift');
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7 + 120, box.y + 70, { steps: 5 });
  await page.mouse.up();
  await page.keyboard.up('Shift');
  await page.waitForFunction(
    (before) => Number(new URLSearchParams(location.hash.split('?')[1]).get('from')) < before,
    zoomed[0],
  );
  assert.equal(await selected(page), '', 'a drag selects nothing');

  await page.getByLabel('Kind').selectOption('event');
  await page.waitForFunction(() => document.querySelector('.legend').textContent.startsWith('0 lifetimes'));
  await page.getByLabel('Kind').selectOption('memory');
  await page.waitForFunction(() => !document.querySelector('.legend').textContent.startsWith('0 lifetimes'));
  await page.getByLabel('Findings').selectOption('any');
  await canvas.focus();
  await page.keyboard.press('n');
  const lifetime = await selected(page);
  assert.notEqual(lifetime, '');
  await page.locator('.detail .moments li').first().waitFor();
  // The range is written to the address after a pause: the address is whole when it has not changed for longer than that.
  await page.waitForFunction(async () => {
    const before = location.hash;
    await new Promise((resolve) => setTimeout(resolve, 500));
    return before === location.hash && before.includes('sel=');
  });

  const other = await open();
  await other.goto(page.url());
  await settled(other);
  await timeline(other);
  assert.equal(await selected(other), lifetime);
  assert.equal(await other.getByLabel('Kind').inputValue(), 'memory');
  assert.equal(await other.getByLabel('Findings').inputValue(), 'any');
  for (const name of ['from', 'to', 'sel']) assert.equal(words(other).get(name), words(page).get(name), name);
  assert.equal((await range(other))[0], (Number(words(page).get('from')) / 1e9).toFixed(6));

  await page.goBack();
  await page.waitForFunction(() => !location.hash.includes('sel='));
  assert.equal(await selected(page), '', 'the back button undoes the last choice');
}

/** The timeline begins with the activity and marks the mistake; a click on the mark goes there. Keys and drags zoom. */
export async function marks_the_mistake({ base, open }) {
  const [run, check, lives] = [await ask(base, 'run'), await ask(base, 'check'), await ask(base, 'lives')];
  const [found] = check.findings;
  const { allocated_ns: allocated, freed_ns: freed } = lives.columns;
  assert.ok(allocated[0] < lives.columns.from_ns[0] && freed[0] >= found.time_ns, 'the memory is known');
  const page = await open({ viewport: { width: 1440, height: 900 } });
  await go(page, base, '#/timeline');
  await timeline(page);
  const begun = await seconds(page);
  assert.ok(begun[0] * 1e9 < allocated[0], `it begins before the allocation: ${begun}`);
  // Where the activity is most of the run, the whole run is shown.
  const ends = [...lives.columns.to_ns, ...freed].filter((ns) => ns !== null && ns <= run.last_ns);
  const isMost = Math.max(...ends) - allocated[0] > 0.85 * run.last_ns;
  assert.ok(begun[1] * 1e9 > found.time_ns, `and ends with the activity: ${begun}`);
  assert.ok(isMost || begun[1] - begun[0] < run.last_ns / 1e9, `and shows no more: ${begun} of ${run.last_ns}`);

  await page.mouse.move(...(await place(page, found.time_ns, 36)));
  await page.locator('.tooltip', { hasText: /freed 8 MiB while .*: free_while_open\.cpp:14/ }).waitFor();
  await page.mouse.click(...(await place(page, found.time_ns, 36)));
  await page.waitForFunction(() => /[?&]finding=/.test(location.hash));
  await page.waitForFunction((before) => Number(document.querySelector('[data-key="filter From"]').value) > before, begun[0]);
  const near = await seconds(page);
  assert.ok(near[0] * 1e9 < found.time_ns && found.time_ns < near[1] * 1e9, `it goes to the mistake: ${near}`);
  assert.ok(near[1] - near[0] < (begun[1] - begun[0]) / 2);
  const detail = await page.locator('.detail').innerText();
  assert.match(detail, /had it open: free_while_open\.cpp:14/);
  assert.match(detail, /allocated \+[\d.]+ ms, freed \+[\d.]+ ms/);
  assert.match(detail, /producer, free_while_open\.cpp:\d+/);
  // The line of the mistake is in its colour.
  const ink = await page.evaluate(
    ([x, y]) => {
      const canvas = document.querySelector('canvas.lanes');
      const box = canvas.getBoundingClientRect();
      const dots = devicePixelRatio;
      const data = canvas.getContext('2d').getImageData((x - box.left - 2) * dots, (box.height - 4) * dots, 4 * dots, 1).data;
      return [...data].some((value, at) => at % 4 === 0 && value > 120 && data[at + 1] < 110 && data[at + 2] < 110);
    },
    await place(page, found.time_ns, 0),
  );
  assert.ok(ink, 'a line marks the instant');

  await page.keyboard.press('h');
  await page.waitForFunction(
    (before) => Number(document.querySelector('[data-key="filter From"]').value) <= before,
    begun[0] + 1e-6,
  );
  const [left, right] = [await place(page, found.time_ns - 2e6, 100), await place(page, found.time_ns + 1e6, 100)];
  await page.mouse.move(...left);
  await page.mouse.down();
  await page.mouse.move(...right, { steps: 4 });
  await page.mouse.up();
  // Like the address, the fields are updated after a pause.
  await page.waitForFunction(
    (before) => Number(document.querySelector('[data-key="filter From"]').value) > before,
    begun[0] + 1e-6,
  );
  const dragged = await seconds(page);
  assert.ok(Math.abs((dragged[1] - dragged[0]) * 1e9 - 3e6) < 1e6, `a drag zooms to what is marked: ${dragged}`);
  const zoomed = async (key, holds) => {
    const before = await seconds(page);
    await page.keyboard.press(key);
    await page.waitForFunction((from) => Number(document.querySelector('[data-key="filter From"]').value) !== from, before[0]);
    const now = await seconds(page);
    assert.ok(holds(before, now), `${key}: ${before} then ${now}`);
  };
  const long = ([from, to]) => to - from;
  await zoomed('w', (before, now) => long(now) < long(before));
  await zoomed('s', (before, now) => long(now) > long(before));
  await zoomed('a', (before, now) => now[0] < before[0]);
  await zoomed('d', (before, now) => now[0] > before[0]);

  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('data-key')), 'filter Search');
  await page.keyboard.type('free_while_open.cpp');
  await page.waitForFunction(() => location.hash.includes('q=free_while_open.cpp'));
  assert.match(await page.locator('.legend').innerText(), /^2 lifetimes/);
  await page.locator('canvas.lanes').focus();
  await page.keyboard.press('?');
  assert.match(await page.locator('dialog[open]').innerText(), /zoom in and out/);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('dialog[open]').count(), 0);
}

/** With many handles every process is one row of density, and only the lanes of findings are open. A click opens all. */
export async function begins_collapsed({ base, open }) {
  const lives = await ask(base, 'lives');
  assert.ok(lives.total > 500, `${lives.total} lifetimes`);
  const page = await open();
  await go(page, base, '#/timeline');
  await timeline(page);
  const canvas = page.locator('canvas.lanes');
  const tall = async () => (await canvas.boundingBox()).height;
  const shut = await tall();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 40, box.y + 68 + 10);
  await page.locator('.tooltip', { hasText: /lifetimes of \d+ exports/ }).waitFor();
  await page.mouse.click(box.x + 40, box.y + 68 + 10);
  await page.waitForFunction(() => location.hash.includes('open='));
  await page.waitForFunction((before) => document.querySelector('canvas.lanes').getBoundingClientRect().height > before, shut);
}
