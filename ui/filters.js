/**
 * The fields with which one says what one wants to see. What was chosen stands in the address: see router.js.
 *
 * @typedef {(changes: Record<string, string | number | boolean | null>) => void} Want  takes what was chosen
 */
import { el } from './dom.js';
import { called } from './run.js';

/**
 * A field of a form of filters, which says its value when a person has chosen it.
 * @param {string} label
 * @param {string} value
 * @param {(string | [string, string])[]} choices  each by its name, or its value and its name; all is one of them
 * @param {(value: string) => void} chosen
 * @param {string} [all]  what it is called when nothing is chosen
 */
export function choice(label, value, choices, chosen, all = 'all') {
  const pairs = [['', all], ...choices.map((one) => (typeof one === 'string' ? [one, one] : one))];
  // What somebody else's address asks for, and this run does not have.
  if (!pairs.some(([one]) => one === value)) pairs.push([value, value]);
  return el(
    'label',
    {},
    label,
    el(
      'select',
      { 'data-key': `filter ${label}`, onchange: (/** @type {any} */ event) => chosen(event.target.value) },
      pairs.map(([one, name]) => el('option', { value: one, selected: one === value }, name)),
    ),
  );
}

/** How long a person may pause while typing, in milliseconds. */
const PAUSE = 250;

/**
 * @param {string} label
 * @param {string} value
 * @param {(value: string) => void} chosen
 * @param {string} [hint]
 */
export function search(label, value, chosen, hint = '') {
  let pause = 0;
  const field = el('input', {
    type: 'search',
    placeholder: hint,
    'data-key': `filter ${label}`,
    autocomplete: 'off',
    spellcheck: 'false',
  });
  field.value = value;
  field.addEventListener('input', () => {
    clearTimeout(pause);
    pause = setTimeout(() => chosen(field.value.trim()), PAUSE);
  });
  return el('label', {}, label, field);
}

/**
 * @param {string} label
 * @param {boolean} value
 * @param {(value: boolean) => void} chosen
 */
export function check(label, value, chosen) {
  return el(
    'label',
    { class: 'check' },
    el('input', {
      type: 'checkbox',
      checked: value,
      'data-key': `filter ${label}`,
      onchange: (/** @type {any} */ event) => chosen(event.target.checked),
    }),
    label,
  );
}

/**
 * @param {import('./run.js').World} world
 * @param {string} value
 * @param {Want} want
 */
export const byProcess = ({ run }, value, want) =>
  choice(
    'Process',
    value,
    run.processes.map(({ index }) => [String(index), called(run, index)]),
    (process) => want({ process }),
  );

/**
 * @param {import('./run.js').World} world
 * @param {string} value
 * @param {Want} want
 */
export const byRule = ({ check }, value, want) =>
  choice(
    'Findings',
    value,
    [
      ['any', 'with findings'],
      ...new Set(/** @type {string[]} */ (check.findings.map((/** @type {any} */ found) => found.rule))),
    ],
    (rule) => want({ rule }),
  );
