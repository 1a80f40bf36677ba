/** Faults in what a controller keeps from one pass, or one life, to the next. */
import type { Mutant } from '../support/mutants/mutant.ts';

const LOOP = 'src/reconciler/loop.ts';
const OBSERVE = 'src/reconciler/observe.ts';

export const MEMORY_MUTANTS: readonly Mutant[] = [
  {
    fault: 'keeps the role that it had before a pause',
    worlds: 'paused',
    file: LOOP,
    find: 'const present = leads() === role.leads ? role : takeRole(recalled);',
    replace: 'const present = role;',
  },
  {
    fault: 'flips backends and images when the host does not answer once',
    file: OBSERVE,
    find: 'hardware: read.hardware ?? known.hardware,',
    replace: 'hardware: read.hardware,',
  },
  {
    fault: 'begins the numbers of a timeline again',
    file: LOOP,
    find: 'createReporter(deps.lastSeq ?? 0, deps.earlier)',
    replace: 'createReporter(0, deps.earlier)',
  },
];
