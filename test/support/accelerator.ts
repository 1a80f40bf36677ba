/** The accelerator for servers of suites. `SVC_TEST_FAST_PATH=0` runs them without `src/turbo/` (`npm run test:fast-path` runs them both ways). */
import { createAccelerator } from '../../src/turbo/fast-path/fast-path.ts';

export const ACCELERATED = process.env['SVC_TEST_FAST_PATH'] === '0' ? {} : { accelerator: createAccelerator({ SVC_FAST_PATH: true }) };
