/** Loaded into a service with `--import`: appends each module of a package that is loaded to the file `TEST_IMPORTS_FILE`. */
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

registerHooks({
  load(url, context, next) {
    if (url.includes('/node_modules/')) appendFileSync(process.env.TEST_IMPORTS_FILE ?? '', `${url}\n`);
    return next(url, context);
  },
});
