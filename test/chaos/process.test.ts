/** What breaks in practice, with servers that are plain processes. Run it with `npm run test:long -- chaos`. */
import { describe } from '@jest/globals';
import { chaosCases } from './support/describe-chaos.ts';

describe('On processes', () => chaosCases('process'));
