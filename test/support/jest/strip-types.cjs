'use strict';
/** Jest transformer: Node's own type stripping. Lines and columns stay, so no source map is needed. `npm run test:long -- mutants` puts a fault into one file. */
const { createHash } = require('node:crypto');
const { stripTypeScriptTypes } = require('node:module');

const mutant = process.env.SVC_TEST_MUTANT === undefined ? undefined : JSON.parse(process.env.SVC_TEST_MUTANT);

function mutate(source, path) {
  if (mutant === undefined || !path.endsWith(`/${mutant.file}`)) return source;
  const parts = source.split(mutant.find);
  if (parts.length !== 2) throw new Error(`Correct the mutant of "${mutant.file}": the text to find must be there exactly once`);
  return parts.join(mutant.replace);
}

module.exports = {
  getCacheKey: (source, path) =>
    createHash('sha256')
      .update(`${process.version} ${path} ${mutate(source, path)}`)
      .digest('hex'),
  process(source, path) {
    return { code: stripTypeScriptTypes(mutate(source, path), { mode: 'strip' }) };
  },
};
