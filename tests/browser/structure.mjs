// Checks how the modules of the page are built: node tests/browser/structure.mjs
//
// No module imports itself through others, no function is longer than CONTRIBUTING.md allows, and no file.

import { readFileSync, readdirSync } from 'node:fs';

import ts from '../../target/browser/node_modules/typescript/lib/typescript.js';

const FOLDER = new URL('../../ui/', import.meta.url);
const LINES_OF_FUNCTION = 100;
const LINES_OF_FILE = 500;

const lines = (text) => text.trimEnd().split('\n').length;

/** The nodes of a syntax tree, from outside to inside. */
function* nodesOf(node) {
  yield node;
  const inside = [];
  ts.forEachChild(node, (child) => void inside.push(child));
  for (const child of inside) yield* nodesOf(child);
}

/** The module of the page that a node imports, at once or later. */
function imported(node) {
  const loads = ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword;
  const declares = ts.isImportDeclaration(node) || ts.isExportDeclaration(node);
  const name = declares ? node.moduleSpecifier : loads ? node.arguments[0] : undefined;
  return name && ts.isStringLiteral(name) ? name.text.replace('./', '') : null;
}

/** A way from a module back to itself, or null. */
function circle(imports, from) {
  const reached = new Map([[from, [from]]]);
  for (const [module, way] of reached) {
    for (const next of imports.get(module) ?? []) {
      if (next === from) return [...way, next];
      if (!reached.has(next)) reached.set(next, [...way, next]);
    }
  }
  return null;
}

const problems = [];
const imports = new Map();
for (const name of readdirSync(FOLDER).filter((name) => name.endsWith('.js'))) {
  const text = readFileSync(new URL(name, FOLDER), 'utf8');
  const tree = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
  const nodes = [...nodesOf(tree)];
  imports.set(name, nodes.map(imported).filter(Boolean));
  if (lines(text) > LINES_OF_FILE) problems.push(`${name} has ${lines(text)} lines; split it at ${LINES_OF_FILE}`);
  for (const node of nodes.filter(ts.isFunctionLike)) {
    const long = lines(node.getText());
    const at = tree.getLineAndCharacterOfPosition(node.getStart()).line + 1;
    if (long > LINES_OF_FUNCTION) {
      problems.push(`${name}:${at}: a function of ${long} lines; split it: functions have at most ${LINES_OF_FUNCTION}`);
    }
  }
}
for (const name of imports.keys()) {
  const way = circle(imports, name);
  // A circle is reported once, at the first of its names.
  if (way?.every((module) => module >= name)) problems.push(`${way.join(' imports ')}: let the first not need the last`);
}
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
