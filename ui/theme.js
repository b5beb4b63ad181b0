/**
 * Light, dark, or as the machine has it. The style sheet does the rest.
 */
const KEY = 'urscope-theme';
const CHOICES = ['auto', 'light', 'dark'];

/** @returns {string} */
function chosen() {
  try {
    return localStorage.getItem(KEY) ?? 'auto';
  } catch {
    return 'auto'; // A browser that keeps nothing.
  }
}

function apply(/** @type {string} */ choice) {
  if (choice === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
}

/**
 * Gives the button its work, and tells who paints by hand when colours have changed.
 * @param {HTMLButtonElement} button
 * @param {() => void} changed
 */
export function themed(button, changed) {
  let choice = chosen();
  const show = () => {
    button.textContent = `Theme: ${choice}`;
  };
  button.addEventListener('click', () => {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // It holds for this page, then.
    }
    apply(choice);
    show();
    changed();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
  apply(choice);
  show();
}

/**
 * The colours that the style sheet has for these names now: a canvas knows no variables.
 * @param {string[]} names
 * @returns {Record<string, string>}
 */
export function colours(names) {
  const probe = document.createElement('span');
  document.body.append(probe);
  const found = names.map((name) => {
    probe.style.color = `var(--${name})`;
    return [name, getComputedStyle(probe).color];
  });
  probe.remove();
  return Object.fromEntries(found);
}
