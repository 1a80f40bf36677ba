import { pathInCheckout } from './modules.mjs';

/** A file is named for its one idea. Names that say nothing collect everything. */
const EMPTY_NAMES = new Set(['index', 'utils', 'util', 'common', 'helpers', 'helper', 'misc', 'shared', 'lib']);

export const plainNames = {
  meta: { type: 'problem', docs: { description: 'No file or folder named for nothing' }, schema: [] },
  create(context) {
    const own = pathInCheckout(context.filename)?.split('/') ?? [];
    const empty = own.map((part) => part.replace(/\..*$/, '')).find((part) => EMPTY_NAMES.has(part));
    if (empty === undefined) return {};
    const message = `Name this file and its folders for the idea they hold: "${empty}" says nothing`;
    return { Program: (node) => context.report({ node, message }) };
  },
};
