'use strict';
/** Jest reporter: writes the last line of `npm test` to the file in CLOSING_LINE_FILE. */
const { writeFileSync } = require('node:fs');

module.exports = class ClosingLineReporter {
  onRunComplete(_contexts, results) {
    const file = process.env.CLOSING_LINE_FILE;
    if (file === undefined) return;
    // A suite that fails to load has no tests: it counts as one failed test.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.numPendingTests + results.numTodoTests;
    writeFileSync(file, `${results.numPassedTests} passed, ${failed} failed, ${skipped} skipped\n`);
  }
};
