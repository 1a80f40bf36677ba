'use strict';
/** Jest transformer: Node's own type stripping. Lines and columns stay, so no source map is needed. */
const { createHash } = require('node:crypto');
const { stripTypeScriptTypes } = require('node:module');

module.exports = {
  getCacheKey: (source, path) => createHash('sha256').update(`${process.version} ${path} ${source}`).digest('hex'),
  process(source) {
    return { code: stripTypeScriptTypes(source, { mode: 'strip' }) };
  },
};
