/** Where a file lies and what it imports, for the rules. */
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Found from this file, because a checkout may itself lie below a folder named "src". */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export function pathInCheckout(filename) {
  return filename.startsWith(ROOT) ? filename.slice(ROOT.length).replaceAll(sep, '/') : undefined;
}

const DASHBOARD = 'dashboard/src/';

/** Where a file lies in src/: its first folder (or its own name, for a file of src/ itself) and its path below src/. The sources of the dashboard count as a folder of it. */
export function placeInSource(filename) {
  const path = pathInCheckout(filename);
  if (path?.startsWith(DASHBOARD) === true) return { folder: 'dashboard', path: `dashboard/${path.slice(DASHBOARD.length)}` };
  if (path === undefined || !path.startsWith('src/')) return undefined;
  const [, folder, ...rest] = path.split('/');
  return { folder, path: [folder, ...rest].join('/') };
}

export function resolveImport(filename, specifier) {
  return join(dirname(filename), specifier);
}

/** A visitor that calls back with each import, re-export and `import()`. With an `import()` of something other than a plain string, the specifier is "". */
export function eachImport(callback) {
  const declaration = (node) => {
    if (node.source === null || node.source === undefined) return;
    callback({ node, specifier: node.source.value, typeOnly: isTypeOnly(node), names: importedNames(node) });
  };
  return {
    ImportDeclaration: declaration,
    ExportNamedDeclaration: declaration,
    ExportAllDeclaration: declaration,
    ImportExpression(node) {
      const specifier = typeof node.source.value === 'string' ? node.source.value : '';
      callback({ node, specifier, typeOnly: false, names: undefined });
    },
    TSImportType(node) {
      const specifier = (node.source ?? node.argument?.literal ?? node.argument)?.value;
      if (typeof specifier === 'string') callback({ node, specifier, typeOnly: true, names: undefined });
    },
  };
}

function isTypeOnly(node) {
  if (node.importKind === 'type' || node.exportKind === 'type') return true;
  const specifiers = node.specifiers ?? [];
  return specifiers.length > 0 && specifiers.every((each) => each.importKind === 'type' || each.exportKind === 'type');
}

/** The names that are imported; undefined where the whole module is. */
function importedNames(node) {
  const specifiers = node.specifiers;
  if (specifiers === undefined || specifiers.length === 0) return undefined;
  if (!specifiers.every((each) => each.type === 'ImportSpecifier' || each.type === 'ExportSpecifier')) return undefined;
  return specifiers
    .filter((each) => each.importKind !== 'type')
    .map((each) => (each.type === 'ImportSpecifier' ? each.imported.name : each.local.name));
}
