/**
 * A function has at most so many lines, without blank ones and comments. A factory (`createX(deps)`) holds the functions of the object that it
 * returns: those count for themselves, and not once more for the factory.
 */
const FACTORY = /^create[A-Z]/;

export const functionLength = {
  meta: {
    type: 'suggestion',
    docs: { description: 'Short functions' },
    schema: [{ type: 'object', properties: { max: { type: 'integer' } }, additionalProperties: false }],
  },
  create(context) {
    const { max } = context.options[0];
    const open = [];
    const enter = (node) => open.push({ name: nameOf(node), inner: [] });
    const leave = (node) => {
      const { name, inner } = open.pop();
      open.at(-1)?.inner.push(node);
      const skipped = FACTORY.test(name) ? inner : [];
      const count = codeLines(context.sourceCode.lines, node, skipped);
      if (count <= max) return;
      const message = `Split ${name === '' ? 'this function' : `"${name}"`}: it has ${count} lines, and ${max} are the most`;
      context.report({ node: node.id ?? node, message });
    };
    const names = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'];
    return Object.fromEntries(
      names.flatMap((name) => [
        [name, enter],
        [`${name}:exit`, leave],
      ]),
    );
  },
};

function nameOf(node) {
  if (node.id?.name !== undefined) return node.id.name;
  const { parent } = node;
  if (parent?.type === 'VariableDeclarator' && parent.id.type === 'Identifier') return parent.id.name;
  if ((parent?.type === 'Property' || parent?.type === 'MethodDefinition') && parent.key.type === 'Identifier') return parent.key.name;
  return '';
}

/** Lines of a node that hold code, but for those that lie whole inside one of `skipped`. */
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
