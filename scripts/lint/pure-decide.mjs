/**
 * A folder named `decide/` holds pure functions. This rule sees to imports, time and asynchrony; the globals that do I/O
 * (`process`, `fetch`, timers …) are listed under "no-restricted-globals" in `.oxlintrc.json`.
 */
import { PURE_NODE_NAMES, PURE_PACKAGES } from './import-table.mjs';
import { eachImport, placeInSource, resolveImport } from './modules.mjs';

export const pureDecide = {
  meta: { type: 'problem', docs: { description: 'Nothing impure in decide/' }, schema: [] },
  create(context) {
    const place = placeInSource(context.filename);
    if (place === undefined || !isDecide(place.path)) return {};
    const refuse = (node, message) => context.report({ node, message: `${message}: "decide/" holds pure functions` });
    const refuseAsync = (node) => {
      if (node.async) refuse(node, 'Make this function synchronous, and let its caller do the waiting');
    };
    return {
      ...eachImport((request) => {
        const message = importProblem(context.filename, request);
        if (message !== undefined) refuse(request.node, message);
      }),
      ...clockVisitors(refuse),
      FunctionDeclaration: refuseAsync,
      FunctionExpression: refuseAsync,
      ArrowFunctionExpression: refuseAsync,
      AwaitExpression: (node) => refuse(node, 'Do not wait here'),
    };
  },
};

function clockVisitors(refuse) {
  return {
    NewExpression(node) {
      if (isNamed(node.callee, 'Date') && node.arguments.length === 0) refuse(node, 'Take the time as an argument instead of "new Date()"');
      if (isNamed(node.callee, 'Promise')) refuse(node, 'Do not make a promise here');
    },
    CallExpression(node) {
      if (isNamed(node.callee, 'Date')) refuse(node, 'Take the time as an argument instead of "Date()"');
      if (isNamed(node.callee, 'require')) refuse(node, 'Do not call "require"');
    },
    MetaProperty(node) {
      if (node.meta.name === 'import') refuse(node, 'Do not read "import.meta"');
    },
  };
}

function importProblem(filename, { node, specifier, typeOnly, names }) {
  if (node.type === 'ImportExpression') return 'Do not load modules while deciding';
  if (typeOnly) return undefined;
  if (specifier.startsWith('.')) {
    const path = placeInSource(resolveImport(filename, specifier))?.path ?? '';
    const pure = path.startsWith('schema/') || isDecide(path) || path.endsWith('.json');
    return pure ? undefined : `Import only types of "${specifier}", or move what is needed into "decide/" or "schema/"`;
  }
  if (PURE_PACKAGES.includes(specifier)) return undefined;
  const pureNames = PURE_NODE_NAMES[specifier];
  if (pureNames !== undefined && names !== undefined && names.every((name) => pureNames.includes(name))) return undefined;
  return `Do not import "${specifier}"`;
}

function isDecide(path) {
  return path.split('/').slice(0, -1).includes('decide');
}

function isNamed(node, name) {
  return node.type === 'Identifier' && node.name === name;
}
