// Runs one scenario in a browser.
//
//   node tests/browser/run_scenario.mjs SCENARIO URL      URL as urscope view prints it, or of a page that is a file; exit code 1 and a stack if it goes wrong

import assert from 'node:assert/strict';

import { launch, nothingWentWrong, visit } from './browser.mjs';
import * as others from './scenarios.mjs';
import * as findings from './scenarios_findings.mjs';
import * as timelines from './scenarios_timeline.mjs';

const scenarios = { ...others, ...findings, ...timelines };

const [name, url, ...more] = process.argv.slice(2);
const scenario = scenarios[name];
if (!scenario || !url) {
  console.error(`usage: node tests/browser/run_scenario.mjs ${Object.keys(scenarios).join('|')} URL`);
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
  await scenario({ base: url.startsWith('file:') ? url : new URL('./', url).href, open, more });
  for (const { faults } of visits) nothingWentWrong(faults);
  assert.ok(visits.length > 0);
} finally {
  await browser.close();
}
