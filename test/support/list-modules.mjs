/** For `--import`: appends the URL of each module that is loaded to the file of `SVC_TEST_MODULES`, and at the end the names of Node's own modules. */
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const file = process.env['SVC_TEST_MODULES'];
registerHooks({
  load(url, context, next) {
    if (file !== undefined) appendFileSync(file, `${url}\n`);
    return next(url, context);
  },
});
process.on('exit', () => {
  if (file !== undefined) appendFileSync(file, process.moduleLoadList.join('\n'));
});
