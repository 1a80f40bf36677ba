'use strict';
/** Jest transformer: Node's own type stripping. Lines and columns stay, so no source map is needed. */
const { stripTypeScriptTypes } = require('node:module');

module.exports = {
  process(source) {
    return { code: stripTypeScriptTypes(source, { mode: 'strip' }) };
  },
};
