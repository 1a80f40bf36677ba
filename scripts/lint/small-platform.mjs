/** Every folder may import `platform/`, so everything could end up there: it stays small, and so does each of its files. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathInCheckout, ROOT } from './modules.mjs';

const FOLDER = 'src/platform';

export const smallPlatform = {
  meta: {
    type: 'suggestion',
    docs: { description: 'A small platform/' },
    schema: [{ type: 'object', properties: { fileMax: { type: 'integer' }, folderMax: { type: 'integer' } }, additionalProperties: false }],
  },
  create(context) {
    const path = pathInCheckout(context.filename);
    if (path === undefined || !path.startsWith(`${FOLDER}/`)) return {};
    const { fileMax, folderMax } = context.options[0];
    return {
      Program(node) {
        const sizes = sizesInFolder();
        const own = sizes.get(path) ?? 0;
        const report = (what, size, max) =>
          context.report({
            node,
            message: `Move an idea from "${FOLDER}" into a folder of its own, or to the folder that it serves: ${what} has ${size} lines, and at most ${max} are allowed`,
          });
        if (own > fileMax) report('this file', own, fileMax);
        const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
        // Reported once, at the longest file.
        if (total > folderMax && path === longest(sizes)) report('the folder', total, folderMax);
      },
    };
  },
};

function sizesInFolder() {
  const files = readdirSync(join(ROOT, FOLDER), { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
  return new Map(
    files.map((path) => [
      join(FOLDER, path),
      readFileSync(join(ROOT, FOLDER, path), 'utf8')
        .trimEnd()
        .split('\n').length,
    ]),
  );
}

function longest(sizes) {
  return [...sizes].toSorted(([pathA, a], [pathB, b]) => b - a || (pathA < pathB ? -1 : 1))[0]?.[0];
}
