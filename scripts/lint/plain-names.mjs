import { pathInCheckout } from './modules.mjs';

/** A file is named after its one idea. A file with a name that could hold anything soon holds everything. */
const EMPTY_NAMES = new Set(['index', 'utils', 'util', 'common', 'helpers', 'helper', 'misc', 'shared', 'lib']);

export const plainNames = {
  meta: { type: 'problem', docs: { description: 'File and folder names with a meaning' }, schema: [] },
  create(context) {
    const own = pathInCheckout(context.filename)?.split('/') ?? [];
    const empty = own.map((part) => part.replace(/\..*$/, '')).find((part) => EMPTY_NAMES.has(part));
    if (empty === undefined) return {};
    const message = `Name this file and its folders after the idea they hold: "${empty}" could hold anything`;
    return { Program: (node) => context.report({ node, message }) };
  },
};
