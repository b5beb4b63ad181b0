/**
 * Puts findings into the clipboard: as text for a message, or as Markdown for an issue.
 */
import { announce, el, plain } from './dom.js';
import { figure, moment, who } from './format.js';
import { sentence } from './run.js';

/** How many frames of a stack are copied. */
const FRAMES = 8;

/** @param {import('./api.js').Frame} frame */
const line = ({ function: name, file, line, module, offset }) =>
  `${name ?? offset} (${file ? `${file}${line === null ? '' : `:${line}`}` : module})`;

/** @param {import('./api.js').Side} side @param {number[]} shown */
function frames(side, shown) {
  const some = shown.length > 0 ? shown.map((at) => side.stack[at]).filter(Boolean) : side.stack;
  return some.slice(0, FRAMES).map(line);
}

/** @param {import('./run.js').RunData} data @param {number} index */
function sides({ run, check }, index) {
  /** @type {import('./api.js').Finding} */
  const found = check.findings[index];
  const shown = run.sentences[index]?.shown ?? [[], []];
  return [
    { name: 'here', side: found.process, frames: frames(found.process, shown[0]) },
    ...(found.other ? [{ name: 'there', side: found.other, frames: frames(found.other, shown[1]) }] : []),
  ].map((one) => ({
    ...one,
    head: `${who(one.side)}, ${one.side.function ?? 'no call'}${one.side.call === null ? '' : ` (call ${one.side.call})`}, ${moment(one.side.time_ns)}`,
  }));
}

/** The text of a finding. @param {import('./run.js').RunData} data @param {number} index */
export function asText(data, index) {
  const { run, check } = data;
  const found = check.findings[index];
  return [
    `${found.severity}: ${sentence(run, check, index)}`,
    `  ${found.rule}: ${found.message}`,
    ...(found.count > 1 ? [`  ${figure(found.count)} times; the first:`] : []),
    ...sides(data, index).flatMap(({ name, head, frames }) => [`  ${name}: ${head}`, ...frames.map((at) => `    at ${at}`)]),
    `  help: ${found.advice}`,
    `  (urscope ${run.urscope}, finding ${found.identity})`,
  ]
    .map(plain)
    .join('\n');
}

/** Characters that Markdown would take for its own. */
const escaped = (/** @type {string} */ text) => text.replace(/[\\`*_{}[\]<>()#+!|~@]/g, '\\$&');

/** The Markdown of a finding, for an issue. @param {import('./run.js').RunData} data @param {number} index */
export function asMarkdown(data, index) {
  const { run, check } = data;
  const found = check.findings[index];
  const code = (/** @type {string[]} */ lines) => lines.map((one) => `    ${plain(one)}`);
  return [
    `**${escaped(plain(`${found.severity}: ${sentence(run, check, index)}`))}**`,
    '',
    escaped(plain(found.message)),
    '',
    ...(found.count > 1 ? [`It happened ${figure(found.count)} times; this is the first time.`, ''] : []),
    ...sides(data, index).flatMap(({ name, head, frames }) => [
      `${name}: ${escaped(plain(head))}`,
      '',
      ...code(frames.length > 0 ? frames : ['no call stack was recorded']),
      '',
    ]),
    `What to do: ${escaped(plain(found.advice))}`,
    '',
    `Found by urscope ${escaped(plain(run.urscope))}, rule ${escaped(plain(found.rule))}, finding ${escaped(plain(found.identity))}.`,
    '',
  ].join('\n');
}

/**
 * A button that copies a text.
 * @param {string} label
 * @param {() => string} text
 */
export function copyButton(label, text) {
  const button = el(
    'button',
    {
      type: 'button',
      'data-key': `copy ${label}`,
      onclick: async () => {
        const done = await navigator.clipboard.writeText(text()).then(
          () => true,
          () => false,
        );
        button.textContent = done ? 'Copied' : 'The browser does not allow it';
        announce(button.textContent ?? '');
        setTimeout(() => {
          button.textContent = label;
        }, 2000);
      },
    },
    label,
  );
  return button;
}
