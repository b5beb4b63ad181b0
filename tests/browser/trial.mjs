// What a person does with the page, done by a browser.
//
//   node tests/browser/trial.mjs STORY URL      URL as urscope view prints it; exit code 1 and a stack if it goes wrong

import assert from 'node:assert/strict';

import { launch, nothingWentWrong, visit } from './browser.mjs';
import * as stories from './stories.mjs';

const [name, url, ...more] = process.argv.slice(2);
const story = stories[name];
if (!story || !url) {
  console.error(`usage: node tests/browser/trial.mjs ${Object.keys(stories).join('|')} URL`);
  process.exit(3);
}

const browser = await launch();
try {
  const visits = [];
  const open = async (options) => {
    const one = await visit(browser, options);
    one.page.setDefaultTimeout(15_000);
    visits.push(one);
    return one.page;
  };
  await story({ base: new URL('./', url).href, open, more });
  for (const { faults } of visits) nothingWentWrong(faults);
  assert.ok(visits.length > 0);
} finally {
  await browser.close();
}
