/**
 * The colour theme: light, dark, or the system's. The style sheet does the rest.
 */
const KEY = 'urscope-theme';
const CHOICES = ['auto', 'light', 'dark'];

/** @returns {string} */
function chosen() {
  try {
    return localStorage.getItem(KEY) ?? 'auto';
  } catch {
    return 'auto'; // The browser stores nothing.
  }
}

function apply(/** @type {string} */ choice) {
  if (choice === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
}

/**
 * Connects the theme button. `changed` is called when colours change, for views that paint on a canvas.
 * @param {HTMLButtonElement} button
 * @param {() => void} changed
 */
export function initTheme(button, changed) {
  let choice = chosen();
  const show = () => {
    button.textContent = `Theme: ${choice}`;
  };
  button.addEventListener('click', () => {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // The choice lasts until the page is closed.
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
 * The current values of these CSS variables: a canvas cannot use variables.
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
