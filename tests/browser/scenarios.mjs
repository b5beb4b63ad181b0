// The browser scenarios. tests/tests/end_to_end/browser.rs makes a run for each. A scenario gets the address of the page and opens
// windows; run_scenario.mjs checks the faults of all windows afterwards (errors, requests to other servers). Those of findings and of
// the timeline are in files of their own.

import assert from 'node:assert/strict';

import { ask, axe, go, savedAnswers, selected, settled, timeline } from './browser.mjs';
import { search } from '../../ui/call_search.js';

const hash = (page) => page.evaluate(() => location.hash);

/** When its server ends the page keeps what it has, and says how to start it again. */
export async function outlives_its_server({ base, open, more: [pid, folder] }) {
  const page = await open();
  await go(page, base);
  // The table of calls is the last of what the views need.
  await page.waitForFunction(() => performance.getEntriesByType('resource').some(({ name }) => name.includes('api/calls')));
  page.outage = true;
  process.kill(Number(pid), 'SIGINT');
  const gone = page.locator('#gone');
  await gone.waitFor({ state: 'visible' });
  assert.match(await gone.innerText(), new RegExp(`start it again: urscope view ${folder}`));
  for (const [name, shown] of [
    ['Timeline', '.canvas-area[data-ready]'],
    ['Handles', '[aria-label="Handles and openings"] tbody tr'],
    ['Calls', '[aria-label="Calls"] tbody tr'],
    ['Overview', '.finding'],
  ]) {
    await page.getByRole('link', { name }).click();
    await page.locator(shown).first().waitFor();
  }
  assert.ok(await gone.isVisible());
}

/** Searches and sorts the tables of calls and handles, and follows a link. */
export async function reads_the_tables({ base, open }) {
  const calls = await ask(base, 'calls?limit=1');
  const page = await open();
  await go(page, base, '#/calls');
  const rows = page.getByRole('region', { name: 'Calls', exact: true }).locator('tbody tr');
  await rows.first().waitFor();
  assert.equal(await rows.count(), Math.min(calls.total, 200));
  await page.getByLabel('IPC only').check();
  await page.waitForFunction(() =>
    [...document.querySelectorAll('#main tbody td code')].every((cell) => cell.textContent.startsWith('urIPC')),
  );
  await page.getByRole('button', { name: 'took' }).click();
  await page.locator('th[aria-sort="ascending"]', { hasText: 'took' }).waitFor();
  const times = await rows.locator('td:last-child span').evaluateAll((cells) => cells.map((cell) => parseInt(cell.title, 10)));
  assert.deepEqual(
    times,
    [...times].sort((a, b) => a - b),
  );
  await page.getByLabel('Search').fill('OpenMem');
  await page.waitForFunction(() => location.hash.includes('q=OpenMem'));
  await page.waitForFunction(() => {
    const cells = [...document.querySelectorAll('#main tbody td code')];
    return cells.length > 0 && cells.every((cell) => /OpenMem/.test(cell.textContent));
  });

  await page.getByRole('link', { name: 'Handles' }).click();
  const handles = page.getByRole('region', { name: 'Handles and openings' }).locator('tbody tr');
  await handles.first().waitFor();
  const lives = await ask(base, 'lives');
  assert.equal(await handles.count(), Math.min(lives.total, 200));
  await handles.first().locator('td a').last().scrollIntoViewIfNeeded();
  await page.getByRole('region', { name: 'Handles and openings' }).locator('a[href^="#/handle/"]').first().click();
  await page.getByRole('heading', { level: 1, name: /^Handle 0x/ }).waitFor();
  await page.getByRole('region', { name: 'History of the handle' }).locator('tbody tr').first().waitFor();
}

/** A page that is a file finds the calls that the server finds, prints the report, and says what it does not have. */
export async function is_a_file({ base, open, more: [server] }) {
  const all = savedAnswers(base);
  const [one] = all.check.findings;
  const { calls } = all;
  const call = calls[0].rows.find(({ value }) => value);
  const queries = [
    'limit=3',
    'offset=2&limit=2&sort=time&desc=1',
    'ipc=1&sort=took',
    'sort=took&desc=1',
    'errors=1',
    'process=1&q=success',
    `q=${one.process.pid}`,
    `q=${call.value}`,
    `q=${call.value.slice(4, 8)}`,
    `q=${call.tid}`,
    `q=${encodeURIComponent(call.site)}`,
    `q=FREE_WHILE&function=${call.function}`,
    `fingerprint=${one.fingerprint}`,
    `from_ns=${one.other.time_ns}&to_ns=${one.time_ns}`,
    `around=${call.process}:${call.call}&limit=5`,
    'q=nothing',
  ];
  for (const query of queries) {
    const { generation, ...answer } = await ask(new URL('./', server).href, `calls?${query}`);
    assert.deepEqual(search(all, Object.fromEntries(new URLSearchParams(query))), answer, query);
  }
  const page = await open();
  await go(page, base);
  assert.ok(await page.locator('.finding').first().isVisible());
  assert.equal(await page.locator('#report').isVisible(), false);
  await page.emulateMedia({ media: 'print' });
  assert.deepEqual([await page.locator('#report').isVisible(), await page.locator('#page').isVisible()], [true, false]);
  const unscripted = await open({ javaScriptEnabled: false });
  await unscripted.goto(base);
  assert.deepEqual(
    [await unscripted.locator('#report h1').isVisible(), await unscripted.locator('#page').isVisible()],
    [true, false],
  );
  await page.emulateMedia({ media: null });
  await go(page, base, '#/handle/0x123');
  await page.getByText('this file does not have the history of 0x123').waitFor();
}

/** Follows the handles of docs/python.md's worked example: as many as its ring has slots, each opened once, from get to put. */
export async function shows_a_ring({ base, open, more }) {
  const slots = Number(more[0]);
  const page = await open();
  await go(page, base);
  assert.equal(await page.locator('.finding').count(), 0);
  assert.equal(
    await page.locator('.graph .node').count(),
    2,
    'the producer and the consumer of the ring; the other shares nothing',
  );

  await page.getByRole('link', { name: 'Timeline' }).first().click();
  await timeline(page);
  await page.waitForFunction((all) => document.querySelector('.legend').textContent.startsWith(all), `${2 * slots} lifetimes`);

  await page.getByRole('link', { name: 'Handles' }).first().click();
  const rows = page.getByRole('region', { name: 'Handles and openings' }).locator('tbody tr');
  await rows.first().waitFor();
  const texts = await rows.allInnerTexts();
  for (const [kind, end] of [
    ['memory handle', 'urIPCPutMemHandleExp'],
    ['mapping', 'urIPCCloseMemHandleExp'],
  ]) {
    const ended = texts.filter((text) => text.includes(kind) && text.includes(end));
    assert.equal(ended.length, slots, `${kind} in ${texts.join('\n')}`);
  }

  const names = new Set(await rows.locator('a[href^="#/handle/"]').evaluateAll((links) => links.map((link) => link.hash)));
  assert.equal(names.size, slots);
  for (const name of names) {
    await go(page, base, name);
    const history = page.getByRole('region', { name: 'History of the handle' }).locator('tbody tr');
    await history.first().waitFor();
    const called = (await history.allInnerTexts()).join('\n');
    for (const verb of ['Get', 'Open', 'Close', 'Put']) assert.match(called, new RegExp(`urIPC${verb}MemHandleExp`));
  }
}

/** Uses only the keyboard: to a finding, to the timeline, to a lifetime and its history. */
export async function walks_by_keys({ base, open }) {
  const page = await open();
  await go(page, base);
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() ?? '');
  const tab = async (until, most = 60) => {
    for (let i = 0; i < most; i++) {
      await page.keyboard.press('Tab');
      if (await page.evaluate(until)) return;
    }
    assert.fail(`tab never led to ${until}`);
  };
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'Skip to the content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'main');
  await tab(() => document.activeElement?.closest('.finding') !== null);
  assert.ok(
    await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle !== 'none'),
    'where one is can be seen',
  );
  await page.keyboard.press('Enter');
  await page.getByRole('region', { name: 'Side: here' }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'main', 'a new view is read from its beginning');

  await page.goto(`${base}#/`);
  await page.reload();
  await settled(page);
  await tab(() => document.activeElement?.textContent === 'Timeline');
  await page.keyboard.press('Enter');
  await timeline(page);
  await tab(() => document.activeElement?.matches('canvas.lanes'));
  await page.keyboard.press('n');
  const first = await selected(page);
  assert.notEqual(first, '');
  const voice = page.locator('#announcer');
  assert.match(
    await voice.innerText(),
    /0x[0-9a-f]+ of .*\(pid \d+\), 8 MiB, (got|opened) in (producer|consumer), free_while_open.cpp:\d+, from \+/,
  );
  await page.keyboard.press('Shift+ArrowDown');
  assert.notEqual(await selected(page), first);
  await page.keyboard.press('p');
  assert.equal(await selected(page), first);
  await page.keyboard.press('f');
  await page.waitForFunction(() => location.hash.includes('from='));
  await page.keyboard.press('h');
  await page.waitForFunction(() => !location.hash.includes('from='));
  await page.keyboard.press('+');
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => location.hash.includes('from='));
  await page.keyboard.press('Enter');
  assert.ok(await page.evaluate(() => document.activeElement?.matches('.detail')));
  await tab(() => document.activeElement?.getAttribute('data-key') === 'lifetime-handle');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: /^Handle 0x/ }).waitFor();
}

/** All views with their names and queries. */
async function views(base) {
  const [{ findings }, lives] = [await ask(base, 'check'), await ask(base, 'lives?limit=1')];
  const [bytes] = lives.columns.fingerprint;
  return [
    '#/',
    '#/timeline',
    `#/timeline?at=${bytes}`,
    '#/handles',
    '#/calls',
    `#/handle/${bytes}`,
    ...(findings[0] ? [`#/finding/${findings[0].identity}`] : []),
    '#/nowhere',
  ];
}

/** Waits until the parts that load later are there, too. */
async function complete(page) {
  await settled(page);
  if ((await hash(page)).startsWith('#/timeline')) await timeline(page);
  await page.waitForLoadState('load');
  await page.waitForFunction(() => ![...document.querySelectorAll('.empty')].some((one) => one.textContent === 'Reading…'));
}

/** No view is cut off or wider than the window, down to 360 pixels. */
export async function fits_a_narrow_window({ base, open }) {
  const page = await open({ viewport: { width: 360, height: 740 }, hasTouch: true });
  for (const view of await views(base)) {
    await go(page, base, view);
    await complete(page);
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= room, `${view} is ${wide} pixels wide in a window of ${room}`);
  }
}

/** axe finds no serious problem in any view, in the light and the dark theme. */
export async function is_accessible({ base, open }) {
  for (const colorScheme of ['light', 'dark']) {
    const page = await open({ colorScheme });
    for (const view of await views(base)) {
      await go(page, base, view);
      await complete(page);
      // Closed sections are checked, too.
      for (const closed of await page.locator('details:not([open]) > summary').all())
        if (await closed.isVisible()) await closed.click();
      await page.evaluate(axe());
      const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
      const serious = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
      assert.deepEqual(
        serious.map(
          ({ id, nodes }) =>
            `${id}: ${nodes
              .map(({ html }) => html)
              .slice(0, 3)
              .join(' ')}`,
        ),
        [],
        `${view} in ${colorScheme}`,
      );
    }
  }
  // The theme button has the same effect as the system's setting.
  const page = await open({ colorScheme: 'light' });
  await go(page, base);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.getByRole('button', { name: 'Theme: auto' }).click();
  assert.equal(await ground(), light);
  await page.getByRole('button', { name: 'Theme: light' }).click();
  assert.notEqual(await ground(), light);
  await page.reload();
  await settled(page);
  assert.notEqual(await ground(), light, 'the choice is kept');
}

/** Shows hostile names as text: no markup is interpreted, no control character is left. */
export async function shows_hostile_names_as_text({ base, open }) {
  const run = await ask(base, 'run');
  const names = run.processes.map((process) => process.executable).join();
  assert.match(names, /<img/, 'the run has the name that it should have');
  const page = await open();
  for (const view of await views(base)) {
    await go(page, base, view);
    await complete(page);
    const state = await page.evaluate(() => ({
      images: document.querySelectorAll('img, script:not([src], [nonce], #answers), iframe').length,
      hurt: globalThis.hurt ?? null,
      text: document.body.innerText + document.title,
    }));
    assert.deepEqual([state.images, state.hurt], [0, null], view);
    assert.doesNotMatch(state.text, /[\u0007\u001b\u202e]/, view);
  }
  await go(page, base);
  assert.match(await page.locator('body').innerText(), /<img src=x/, 'it can be read');
}

/** Follows a program while it runs, and keeps the selection. */
export async function follows_a_run({ base, open, more: [gate] }) {
  const { writeFileSync } = await import('node:fs');
  const page = await open();
  await go(page, base, '#/timeline');
  await timeline(page);
  await page.locator('#live.on').waitFor();
  const before = await ask(base, 'run');
  assert.equal(before.running, true);
  await page.waitForFunction(() => /^[1-9]/.test(document.querySelector('.legend').textContent));
  await page.locator('canvas.lanes').focus();
  await page.keyboard.press('n');
  const lifetime = await selected(page);
  assert.notEqual(lifetime, '');
  writeFileSync(gate, '');
  await page.locator('#live:not(.on)', { hasText: 'ended' }).waitFor({ timeout: 30_000 });
  assert.equal(await selected(page), lifetime, 'what was selected still is');
  const after = await ask(base, 'run');
  assert.ok(after.generation > before.generation && after.calls > before.calls);
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByText(`${after.processes.length} processes`).waitFor();
}

/** A click opens the run in Perfetto: its processes are tracks. */
export async function hands_over_to_perfetto({ base, open }) {
  const run = await ask(base, 'run');
  assert.ok(run.perfetto.local, 'a copy of its UI is served');
  const page = await open();
  await go(page, base);
  const opened = page.context().waitForEvent('page');
  await page.getByRole('button', { name: 'Open in Perfetto' }).click();
  const perfetto = await opened;
  assert.ok(perfetto.url().startsWith(new URL(run.perfetto.url, base).href.split('#')[0]));
  await perfetto
    .getByText(new RegExp(`${run.processes[0].pid}`))
    .first()
    .waitFor({ timeout: 60_000 });
  assert.match(await perfetto.title(), /urscope/);
  await no_error(perfetto);
}

/** With `--perfetto` the page opens the run in the local Perfetto UI without a click. */
export async function goes_straight_to_perfetto({ base, open }) {
  const run = await ask(base, 'run');
  const page = await open();
  await page.goto(`${base}perfetto.html`);
  await page.waitForURL((url) => url.hostname === 'localhost');
  await page
    .getByText(new RegExp(`${run.processes[0].pid}`))
    .first()
    .waitFor({ timeout: 60_000 });
  await no_error(page);
}

/** Perfetto shows no dialog, neither at once nor when a request of its own has failed. */
async function no_error(/** @type {import('playwright-core').Page} */ perfetto) {
  await perfetto.waitForTimeout(2000);
  const dialogs = await perfetto.locator('dialog, .pf-modal-dialog, .modal-dialog').allInnerTexts();
  assert.deepEqual(dialogs, []);
  assert.equal(await perfetto.getByText('Oops').count(), 0);
}

/** Without calls every view says that nothing was judged, and none says clean. */
export async function shows_an_empty_run({ base, open }) {
  const page = await open();
  await go(page, base);
  assert.match(await page.locator('#main h1').innerText(), /^Not judged/);
  assert.doesNotMatch(await page.locator('main').innerText(), /\bclean\b|NaN|undefined|null/i);
  for (const view of ['#/timeline', '#/handles', '#/calls']) {
    await go(page, base, view);
    await complete(page);
    assert.doesNotMatch(await page.locator('main').innerText(), /NaN|undefined|Infinity/, view);
  }
}
