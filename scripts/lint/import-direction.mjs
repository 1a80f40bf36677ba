/** Imports between the folders of src/ follow the table in `import-table.mjs`; from outside src/, files import only what it lists. */
import { MAY_IMPORT } from './import-table.mjs';
import { eachImport, pathInCheckout, placeInSource, resolveImport } from './modules.mjs';

export const importDirection = {
  meta: { type: 'problem', docs: { description: 'Imports between folders in one direction' }, schema: [] },
  create(context) {
    const place = placeInSource(context.filename);
    if (place === undefined) return {};
    const allowed = MAY_IMPORT[place.folder];
    if (allowed === undefined) return { Program: (node) => context.report({ node, message: unknownFolder(place.folder) }) };
    return eachImport((request) => {
      const message = request.specifier.startsWith('.')
        ? relativeProblem(context.filename, place, allowed, request)
        : packageProblem(place, allowed, request);
      if (message !== undefined) context.report({ node: request.node, message });
    });
  },
};

function relativeProblem(filename, place, allowed, { specifier, typeOnly }) {
  const file = resolveImport(filename, specifier);
  const target = placeInSource(file);
  const outside = pathInCheckout(file);
  if (target === undefined && outside !== undefined && allowed.outside?.[place.path]?.includes(outside)) return undefined;
  if (target === undefined) return `Import only files of "src/" here: "${specifier}" lies outside`;
  if (target.folder === place.folder) return undefined;
  const values = [...allowed.values, ...(allowed.more?.[place.path] ?? [])];
  const patterns = typeOnly ? [...values, ...(allowed.types ?? [])] : values;
  if (patterns.some((pattern) => matches(pattern, target.path))) return undefined;
  const types = (allowed.types ?? []).map((name) => `types of "${name}"`);
  const may = [...allowed.values.map((name) => `"${name}"`), ...types].join(', ') || 'nothing else of "src/"';
  const what = typeOnly ? 'the types of' : '';
  return `Do not import ${what}${what === '' ? '' : ' '}"${target.path}" in "${place.folder}": it may import ${may} (table: "scripts/lint/import-table.mjs")`;
}

function packageProblem(place, allowed, { specifier }) {
  if (allowed.packages === undefined || allowed.packages.includes(specifier)) return undefined;
  return `Do not import "${specifier}" in "${place.folder}": the only package it may import is ${allowed.packages.map((name) => `"${name}"`).join(', ')}`;
}

function matches(pattern, path) {
  if (pattern === '*') return true;
  return pattern.endsWith('/') ? path.startsWith(pattern) : path === pattern;
}

function unknownFolder(folder) {
  return `Give "src/${folder}" a line in "scripts/lint/import-table.mjs", which lists what every folder of "src/" may import`;
}
