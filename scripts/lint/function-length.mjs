/**
 * A function has at most `max` lines, not counting blank lines and comments. In a factory (`createX(deps)`), the functions of the object that it
 * returns count separately; the factory with all of them, and a class with all its methods, have at most `wholeMax` lines.
 */
const FACTORY = /^create[A-Z]/;
const FUNCTIONS = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'];
const CLASSES = ['ClassDeclaration', 'ClassExpression'];

export const functionLength = {
  meta: {
    type: 'suggestion',
    docs: { description: 'Short functions, factories and classes' },
    schema: [{ type: 'object', properties: { max: { type: 'integer' }, wholeMax: { type: 'integer' } }, additionalProperties: false }],
  },
  create(context) {
    const { max, wholeMax } = context.options[0];
    const { lines } = context.sourceCode;
    const open = [];
    const report = (node, message) => context.report({ node: node.id ?? node, message });
    const enter = (node) => open.push({ name: nameOf(node), inner: [] });
    const leave = (node) => {
      const { name, inner } = open.pop();
      open.at(-1)?.inner.push(node);
      const factory = FACTORY.test(name);
      const count = codeLines(lines, node, factory ? inner : []);
      if (count > max)
        report(node, `Split ${name === '' ? 'this function' : `"${name}"`}: it has ${count} lines, and at most ${max} are allowed`);
      if (factory) checkWhole(node, name);
    };
    const checkWhole = (node, name) => {
      const count = codeLines(lines, node, []);
      if (count > wholeMax)
        report(node, `Split "${name}" by responsibility: as a whole it has ${count} lines, and at most ${wholeMax} are allowed`);
    };
    return Object.fromEntries([
      ...FUNCTIONS.flatMap((type) => [
        [type, enter],
        [`${type}:exit`, leave],
      ]),
      ...CLASSES.map((type) => [type, (node) => checkWhole(node, nameOf(node))]),
    ]);
  },
};

function nameOf(node) {
  if (node.id?.name !== undefined) return node.id.name;
  const { parent } = node;
  if (parent?.type === 'VariableDeclarator' && parent.id.type === 'Identifier') return parent.id.name;
  if ((parent?.type === 'Property' || parent?.type === 'MethodDefinition') && parent.key.type === 'Identifier') return parent.key.name;
  return '';
}

/** Lines of a node that hold code, without those that lie completely inside one of `skipped`. */
function codeLines(lines, node, skipped) {
  let count = 0;
  for (let line = node.loc.start.line; line <= node.loc.end.line; line++) {
    const text = lines[line - 1].trim();
    if (text === '' || text.startsWith('//') || text.startsWith('/*') || text.startsWith('*')) continue;
    // The first and the last line of an inner function are where the factory names it.
    if (skipped.some(({ loc }) => loc.start.line < line && line < loc.end.line)) continue;
    count += 1;
  }
  return count;
}
