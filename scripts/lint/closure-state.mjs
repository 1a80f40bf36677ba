/**
 * Finds state that outlives a call: a variable that a function hands out in a closure which changes it later, and a class whose objects change.
 * Local variables that change while their function runs are fine.
 */

/** Methods that change the collection they are called on. */
const CHANGING_METHODS = new Set([
  'set',
  'add',
  'delete',
  'clear',
  'push',
  'pop',
  'shift',
  'unshift',
  'splice',
  'sort',
  'reverse',
  'fill',
  'copyWithin',
]);
/** A function inside one of these is handed on with it. */
const WRAPPERS = new Set([
  'Property',
  'ObjectExpression',
  'ArrayExpression',
  'ConditionalExpression',
  'LogicalExpression',
  'SpreadElement',
]);
const TYPE_WRAPPERS = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression', 'ParenthesizedExpression']);

/** Variables of functions that a closure changes after it was returned: name and the place of the change. */
export function findClosureState(scopeManager) {
  const found = new Map();
  for (const scope of scopeManager.scopes) {
    if (scope.variableScope.type !== 'function') continue;
    for (const variable of scope.variables) {
      const change = variable.references.find(
        (reference) => changes(reference) && isHandedOut(reference.from.variableScope, scope.variableScope, scopeManager, new Set()),
      );
      if (change !== undefined) found.set(variable, change.identifier);
    }
  }
  return [...found].map(([{ name }, node]) => ({ name, node }));
}

/** Arguments of exported functions that the functions change: name and the place of the change. */
export function findChangedArguments(scopeManager) {
  return scopeManager.scopes
    .filter(({ type, block }) => type === 'function' && isExported(block))
    .flatMap(({ variables }) => variables.filter(({ defs }) => defs[0]?.type === 'Parameter'))
    .flatMap(({ name, references }) => {
      const change = references.find((reference) => !reference.isWrite() && changes(reference));
      return change === undefined ? [] : [{ name, node: change.identifier }];
    });
}

/** Whether `this` is changed after it was made. Not in classes that `findClassState` finds: those are reported once. */
export function changesThis(node) {
  if (!changesAt(node)) return false;
  for (let { parent } = node; parent !== undefined && parent !== null; parent = parent.parent) {
    if (parent.type === 'MethodDefinition' && parent.kind === 'constructor') return false;
    if (parent.type === 'ClassBody') return findClassState(parent.parent).length === 0;
  }
  return true;
}

/** Fields of a class that may change after an object was made; none for classes of errors. */
export function findClassState(classNode) {
  if (classNode.superClass?.name?.endsWith('Error')) return [];
  return classNode.body.body.filter(
    (member) => (member.type === 'PropertyDefinition' || member.type === 'AccessorProperty') && !member.readonly && !member.declare,
  );
}

function isExported({ type, parent }) {
  if (type === 'FunctionDeclaration') return parent?.type === 'ExportNamedDeclaration';
  return parent?.type === 'VariableDeclarator' && parent.parent?.parent?.type === 'ExportNamedDeclaration';
}

function changes(reference) {
  if (reference.isWrite()) return reference.init !== true;
  return changesAt(reference.identifier);
}

/** Whether the object that an expression stands for is changed through it: by an assignment, or by a method. */
function changesAt(object) {
  let node = object;
  while (node.parent?.type === 'MemberExpression' && node.parent.object === node) node = node.parent;
  if (node === object) return false;
  const { parent } = node;
  if (parent.type === 'AssignmentExpression') return parent.left === node;
  if (parent.type === 'UpdateExpression') return true;
  if (parent.type === 'UnaryExpression') return parent.operator === 'delete';
  return parent.type === 'CallExpression' && parent.callee === node && CHANGING_METHODS.has(node.property.name);
}

/** Whether the function of `scope`, or one around it inside of `owner`, leaves the function of `owner`. */
function isHandedOut(scope, owner, scopeManager, seen) {
  for (let each = scope; each !== undefined && each !== null && each !== owner; each = each.upper?.variableScope) {
    if (each.type === 'function' && leaves(each.block, owner, scopeManager, seen)) return true;
  }
  return false;
}

function leaves(node, owner, scopeManager, seen) {
  if (seen.has(node)) return false;
  seen.add(node);
  if (node.type === 'FunctionDeclaration') return nameLeaves(node, owner, scopeManager, seen);
  let inner = node;
  let { parent } = node;
  while (parent !== undefined && (WRAPPERS.has(parent.type) || TYPE_WRAPPERS.has(parent.type))) {
    inner = parent;
    ({ parent } = parent);
  }
  if (parent === undefined) return false;
  if (parent.type === 'ReturnStatement') return true;
  if (parent.type === 'ArrowFunctionExpression') return parent.body === inner;
  if (parent.type === 'AssignmentExpression') return parent.right === inner && parent.left.type === 'MemberExpression';
  if (parent.type === 'VariableDeclarator') return nameLeaves(parent, owner, scopeManager, seen);
  return false;
}

/** Whether what a declaration names is returned, or used by a function that is. */
function nameLeaves(declaration, owner, scopeManager, seen) {
  return scopeManager
    .getDeclaredVariables(declaration)
    .flatMap(({ references }) => references)
    .some(
      (reference) =>
        reference.init !== true &&
        (isHandedOut(reference.from.variableScope, owner, scopeManager, seen) || leaves(reference.identifier, owner, scopeManager, seen)),
    );
}
