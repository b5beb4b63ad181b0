// The scenarios of findings and of what the first view shows: see scenarios.mjs.

import assert from 'node:assert/strict';

import { ask, go, selected, timeline } from './browser.mjs';

/** Follows the first finding from the overview to both sides, the history of its handle and the calls around, and back. */
export async function follows_a_finding({ base, open }) {
  const check = await ask(base, 'check');
  const [found] = check.findings;
  const page = await open();
  await go(page, base);
  // The first line is a sentence with the place.
  const line = found.process.stack.find((frame) => frame.program && !frame.wrapper);
  const sentence = `producer freed 8 MiB while consumer had it open: ${line.file.split('/').pop()}:${line.line}`;
  assert.equal(check.headline, sentence);
  assert.equal(await page.locator('#main h1').innerText(), sentence);
  assert.equal(await page.locator('.finding').count(), check.findings.length);
  const card = await page.locator('.finding').first().innerText();
  assert.ok(card.includes(sentence) && card.includes(`producer, free_while_open.cpp:${line.line}`), card);
  assert.equal(await page.locator('.graph .node').count(), 2, 'the two processes that share');
  assert.equal(await page.locator('.graph .edge.error').count(), 1, 'the sharing between them has the error');
  assert.match(await page.title(), /^1 error · /);

  await page.locator('#main h1 a').click();
  await page.getByRole('heading', { level: 1, name: sentence }).waitFor();
  const [here, there] = [page.getByRole('region', { name: 'Side: here' }), page.getByRole('region', { name: 'Side: there' })];
  assert.match(await here.innerText(), new RegExp(`pid ${found.process.pid}\\b[^]*${found.process.function}`));
  assert.match(await there.innerText(), new RegExp(`pid ${found.other.pid}\\b[^]*${found.other.function}`));
  assert.match(await here.innerText(), new RegExp(`${line.file.split('/').pop()}:${line.line}`));
  assert.ok((await page.locator('.advice').innerText()).includes(found.advice), found.advice);

  const history = await ask(base, `handle?name=${found.fingerprint}`);
  const lifetime = page.getByRole('region', { name: 'History of the handle' }).locator('tbody tr');
  await lifetime.first().waitFor();
  assert.equal(await lifetime.count(), history.moments.length);
  assert.equal(
    await page.getByRole('region', { name: 'History of the handle' }).locator('tr[aria-current]').count(),
    2,
    'both sides are marked',
  );
  const near = page.getByRole('region', { name: /^Calls of .* around call/ });
  await near.first().waitFor();
  assert.equal(await near.count(), 2);
  assert.equal(await near.first().locator('tr[aria-current] code').innerText(), found.process.function);

  await page.getByRole('link', { name: 'This moment on the timeline' }).click();
  await timeline(page);
  assert.notEqual(await selected(page), '', 'the handle of the finding is selected');
  await page.goBack();
  await page.getByRole('heading', { level: 1, name: sentence }).waitFor();
  await page.goBack();
  await page.locator('.verdict h1').waitFor();
}

/** A finding has the source around both places, the explanation of its rule, and buttons that copy it. */
export async function explains_a_finding({ base, open, more: [where] }) {
  const [found] = (await ask(base, 'check')).findings;
  const page = await open({ permissions: ['clipboard-read', 'clipboard-write'] });
  await go(page, base, `#/finding/${found.identity}`);
  const sides = [page.getByRole('region', { name: 'Side: here' }), page.getByRole('region', { name: 'Side: there' })];
  if (where === 'elsewhere') {
    for (const side of sides) await side.getByText('No source: its source is not below the directory').waitFor();
    return;
  }
  const [freed, opened] = [sides[0].locator('.line.meant'), sides[1].locator('.line.meant')];
  await freed.waitFor();
  await opened.waitFor();
  assert.match(await freed.innerText(), /^14\s+gpu\.free\(/);
  assert.match(await opened.innerText(), /^20\s+.* = open_and_read\(/);
  assert.equal(await sides[0].locator('.source .line').count(), 9);
  // Each frame of a stack opens its own.
  const wrapper = sides[0].locator('.frame', { hasText: 'app::Gpu::free' }).first();
  await wrapper.locator('summary').click();
  assert.match(await wrapper.locator('.line.meant').innerText(), /^37\s+void free\(void \*memory\) \{ sycl::free/);

  await page.getByText(`Why ${found.rule} is reported`).click();
  const explained = await page.locator('.explanation').innerText();
  assert.match(explained, /SYCL states that the free invalidates every mapping/);

  // The page may not read the clipboard, so what was copied is pasted.
  await page.evaluate(() => document.body.append(Object.assign(document.createElement('textarea'), { id: 'paste' })));
  const copied = async (name) => {
    await page.locator(`[data-key="copy ${name}"]`).click();
    await page.locator(`[data-key="copy ${name}"]`, { hasText: 'Copied' }).waitFor();
    await page.locator('#paste').fill('');
    await page.locator('#paste').press('Control+V');
    return page.locator('#paste').inputValue();
  };
  const text = await copied('Copy as text');
  assert.match(text, /^error: producer freed 8 MiB while consumer had it open: free_while_open\.cpp:14\n/);
  assert.match(text, /\n {4}at app::Gpu::free\(void\*\) \(.*ipc_app\.hpp:37\)\n/);
  const markdown = await copied('Copy as Markdown');
  assert.match(markdown, /^\*\*error: producer freed 8 MiB/);
  assert.ok(markdown.includes('\n    app::Gpu::free(void*)'), markdown);
}

/** Ranks are in order in every list, and who opened whose memory is a matrix. */
export async function shows_ranks_in_order({ base, open }) {
  const [run, check] = [await ask(base, 'run'), await ask(base, 'check')];
  const found = check.findings.findIndex((one) => one.rule === 'leaked-mapping');
  const page = await open();
  await go(page, base);
  assert.match(await page.locator('#main h1').innerText(), /^(rank \d+|\d+ of \d+ ranks) .*: clean_ranks\.cpp:\d+$/);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).fontSize), '14px');
  const card = page.locator('.finding', { hasText: 'leaked-mapping' });
  assert.match(
    await card.innerText(),
    /\d+ of \d+ ranks opened 1 MiB and never closed it: clean_ranks\.cpp:\d+ \(16 times in 16 processes\)/,
  );
  const ranks = await page.locator('[aria-label="Processes"] tbody td:nth-child(2)').allInnerTexts();
  assert.deepEqual(ranks.map(Number), [...Array(17).keys()]);

  const canvas = page.locator('canvas.matrix');
  await canvas.waitFor();
  // A canvas that was not painted has the width of the standard, 300.
  await page.waitForFunction(() => document.querySelector('canvas.matrix').width !== 300);
  // Row 0 is the memory of rank 0; its first cell is on the diagonal, the others are opened by rank 1 and so on.
  const colours = await canvas.evaluate((canvas) => {
    const scale = devicePixelRatio;
    const cell = 28;
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const at = (row, column) => {
      const [x, y] = [74 + (column + 0.5) * cell, 40 + (row + 0.5) * cell].map((pixel) => Math.round(pixel * scale));
      return data.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 4).join();
    };
    return { diagonal: [0, 1, 2, 9].map((place) => at(place, place)), opened: [1, 5, 9].map((c) => at(0, c)), empty: at(5, 2) };
  });
  assert.equal(new Set(colours.diagonal).size, 1, 'the diagonal has one colour');
  assert.equal(new Set([colours.diagonal[0], colours.empty]).size, 2, 'and it is not that of an empty cell');
  for (const colour of colours.opened) assert.ok(![colours.empty, colours.diagonal[0]].includes(colour), 'opened by each rank');
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 74 + 3.5 * 28, box.y + 40 + 14);
  await page.getByText(/^memory of rank 0 \(pid \d+\), opened by rank 3 \(pid \d+\): 1 open/).waitFor();
  // The same by keyboard. Where the memory of rank 0 was freed while it was open, the cell has the colour of an error.
  await canvas.focus();
  await canvas.press('ArrowRight');
  const worst = check.findings.find((one) => one.severity === 'error' && one.other?.rank === 1);
  const there = worst ? /opened by rank 1 \(pid \d+\): 1 open.*, with an error$/ : /opened by rank 1 \(pid \d+\): 1 open/;
  await page.getByText(there).first().waitFor();

  await go(page, base, `#/finding/${check.findings[found].identity}`);
  const rows = page.getByRole('region', { name: 'Occurrences' }).locator('tbody tr');
  assert.equal(await rows.count(), 16, 'all occurrences are in the table');
  const processes = await rows.locator('td:first-child').allInnerTexts();
  assert.deepEqual(
    processes.map((name) => Number(/^rank (\d+)/.exec(name)?.[1])),
    [...Array(17).keys()].slice(1),
  );
  for (const view of ['#/timeline', '#/calls', '#/handles']) {
    await go(page, base, view);
    const options = await page.getByLabel('Process').locator('option').allInnerTexts();
    assert.deepEqual(
      options.slice(1).map((name) => Number(/^rank (\d+)/.exec(name)?.[1])),
      run.processes.map((_, index) => index),
    );
  }
  const sites = await page.locator('td .site').allInnerTexts();
  assert.ok(
    sites.length > 9 && sites.every((site) => /, clean_ranks\.cpp:\d+$/.test(site)),
    `every row has its call site: ${sites}`,
  );
}

/** Two commands that nothing orders are two bars, on the finding and on the timeline, with the time between them. */
export async function shows_what_nothing_orders({ base, open }) {
  const [found] = (await ask(base, 'check')).findings;
  const [first, second] = [found.other, found.process].sort((a, b) => a.time_ns - b.time_ns);
  assert.ok(second.time_ns < first.known_ns, 'the second one was enqueued too early');
  const page = await open();
  await go(page, base, `#/finding/${found.identity}`);
  const picture = page.getByRole('img', { name: 'Both commands: write: urEnqueueUSMFill and read: urEnqueueUSMMemcpy' });
  await picture.waitFor();
  const [between, ...bars] = await picture
    .locator('rect')
    .evaluateAll((all) => all.map(({ x, width }) => [x.baseVal.value, x.baseVal.value + width.baseVal.value]));
  const near = (one, other) => Math.abs(one - other) < 2;
  assert.equal(bars.length, 2);
  assert.ok(near(between[0], bars[1][0]) && near(between[1], bars[0][1]) && bars[0][0] === 0, `${between}; ${bars}`);

  await page.getByRole('link', { name: 'This moment on the timeline' }).click();
  await timeline(page);
  await page.locator('.detail', { hasText: /In the [\d.]+ [um]s that are marked, nothing orders them\./ }).waitFor();
}
