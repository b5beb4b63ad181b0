/**
 * Form fields for filters. What was chosen is kept in the address: see router.js.
 *
 * @typedef {(changes: Record<string, string | number | boolean | null>) => void} Want  stores what was chosen
 */
import { el } from './dom.js';
import { called, inOrder } from './run.js';

/**
 * A drop-down field of a filter form.
 * @param {string} label
 * @param {string} value
 * @param {(string | [string, string])[]} choices  a name, or a value and its name; "all" is added
 * @param {(value: string) => void} chosen
 * @param {string} [all]  the name of the choice that filters nothing
 */
export function choice(label, value, choices, chosen, all = 'all') {
  const pairs = [['', all], ...choices.map((one) => (typeof one === 'string' ? [one, one] : one))];
  // The address asks for a value that this run does not have.
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

/** How long the search waits after the last key, in milliseconds. */
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
 * @param {import('./run.js').RunData} data
 * @param {string} value
 * @param {Want} want
 */
export const byProcess = ({ run }, value, want) =>
  choice(
    'Process',
    value,
    inOrder(run).map(({ index }) => [String(index), called(run, index)]),
    (process) => want({ process }),
  );

/**
 * @param {import('./run.js').RunData} data
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
