/** State belongs to what a `createX(deps)` returns, never to a module: a second instance in one process must not see the state of the first. */
import { placeInSource } from './modules.mjs';

const COLLECTIONS = new Set(['Map', 'Set', 'WeakMap', 'WeakSet']);

export const noModuleState = {
  meta: { type: 'problem', docs: { description: 'No variable at the top of a module' }, schema: [] },
  create(context) {
    if (placeInSource(context.filename) === undefined) return {};
    const report = (node, message) =>
      context.report({ node, message: `${message}: keep state in what a function like "createLoop(deps)" returns` });
    return {
      Program(program) {
        for (const statement of program.body) {
          const declaration = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
          if (declaration?.type !== 'VariableDeclaration') continue;
          if (declaration.kind !== 'const') report(declaration, `Do not use "${declaration.kind}" at the top of a module`);
          for (const each of declaration.declarations) {
            if (isEmptyCollection(each.init)) report(each, 'Do not keep an empty collection at the top of a module');
          }
        }
      },
    };
  },
};

function isEmptyCollection(node) {
  return node?.type === 'NewExpression' && COLLECTIONS.has(node.callee.name) && node.arguments.length === 0;
}
