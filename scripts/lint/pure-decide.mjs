/**
 * A folder named `decide/` contains pure functions. This rule checks imports, time, asynchrony and state that outlives a call; the globals that
 * do I/O (`process`, `fetch`, timers …) are listed under "no-restricted-globals" in `.oxlintrc.json`.
 */
import { changesThis, findChangedArguments, findClassState, findClosureState } from './closure-state.mjs';
import { PURE_NODE_NAMES, PURE_PACKAGES } from './import-table.mjs';
import { eachImport, placeInSource, resolveImport } from './modules.mjs';

const FACTORY = /^create[A-Z]/;

export const pureDecide = {
  meta: { type: 'problem', docs: { description: 'Pure functions in decide/' }, schema: [] },
  create(context) {
    const place = placeInSource(context.filename);
    if (place === undefined || !isDecide(place.path)) return {};
    const refuse = (node, message) => context.report({ node, message: `${message}: "decide/" contains pure functions` });
    const checkFunction = (node) => {
      if (node.async) refuse(node, 'Make this function synchronous, and let its caller wait');
      const name = node.id ?? (node.parent?.type === 'VariableDeclarator' ? node.parent.id : undefined);
      if (FACTORY.test(name?.name))
        refuse(name, `Rename "${name.name}" or move it out: a name with "create" stands for a thing with state`);
    };
    const checkClass = (node) => {
      const fields = findClassState(node).map(({ key }) => `"${key.name}"`);
      if (fields.length > 0) refuse(node.id ?? node, `Make every field "readonly", or move this class out: ${fields.join(', ')} change`);
    };
    return {
      ...eachImport((request) => {
        const message = importProblem(context.filename, request);
        if (message !== undefined) refuse(request.node, message);
      }),
      ...clockVisitors(refuse),
      FunctionDeclaration: checkFunction,
      FunctionExpression: checkFunction,
      ArrowFunctionExpression: checkFunction,
      ClassDeclaration: checkClass,
      ClassExpression: checkClass,
      AwaitExpression: (node) => refuse(node, 'Do not wait here'),
      ThisExpression(node) {
        if (changesThis(node)) refuse(node, 'Return a new object instead of changing "this"');
      },
      'Program:exit'() {
        for (const { name, node } of findChangedArguments(context.sourceCode.scopeManager)) {
          refuse(node, `Return a new value instead of changing the argument "${name}"`);
        }
        for (const { name, node } of findClosureState(context.sourceCode.scopeManager)) {
          refuse(node, `Pass "${name}" as a value and return the next one: this closure would keep it between calls`);
        }
      },
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
  if (node.type === 'ImportExpression') return 'Do not load modules here';
  if (typeOnly) return undefined;
  if (specifier.startsWith('.')) {
    const path = placeInSource(resolveImport(filename, specifier))?.path ?? '';
    const pure = path.startsWith('schema/') || isDecide(path) || path.endsWith('.json');
    return pure ? undefined : `Import only types of "${specifier}", or move what you need into "decide/" or "schema/"`;
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
