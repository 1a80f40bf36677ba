/** The rows of `verb-table.ts` for the history of slots, with the names of `kubectl rollout`, and for the source. */
import * as shared from './shared-options.ts';
import { option, verb, type Verb } from './verb.ts';

const SLOT = { ...shared.SLOT, name: '<slot>', help: 'Slot as slot/NAME', suggestions: 'slot/NAME' } as const;

export const ROLLOUT_VERBS: readonly Verb[] = [
  verb('history', 'List the revisions of a slot, or print the spec of one', {
    arguments: [SLOT],
    options: [option('--revision <number>', 'Print the spec of this revision, as TOML unless -o says otherwise'), shared.OUTPUT],
    examples: ['svcctl rollout history slot/primary', 'svcctl rollout history slot/primary --revision 3'],
    load: async () => (await import('./verbs/rollout.ts')).runHistory,
  }),
  verb('status', 'Wait until the newest spec of a slot is in force (exit code 1 if it cannot be)', {
    arguments: [SLOT],
    options: [shared.TIMEOUT],
    examples: ['svcctl rollout status slot/primary --timeout 2m'],
    load: async () => (await import('./verbs/rollout.ts')).runStatus,
  }),
  verb('undo', 'Return to the last revision that served, or to another one; comments in the file stay', {
    arguments: [SLOT],
    options: [option('--to-revision <number>', 'Revision to return to'), shared.DRY_RUN, ...shared.WAIT],
    examples: ['svcctl rollout undo slot/primary', 'svcctl rollout undo slot/primary --to-revision 3 --wait'],
    load: async () => (await import('./verbs/rollout.ts')).runUndo,
  }),
  verb('pause', 'Let edits of a slot wait; what is in force stays so and is repaired', {
    arguments: [SLOT],
    examples: ['svcctl rollout pause slot/primary'],
    load: async () => (await import('./verbs/rollout.ts')).runPause,
  }),
  verb('resume', 'Let edits of a slot take effect again', {
    arguments: [SLOT],
    options: shared.WAIT,
    examples: ['svcctl rollout resume slot/primary --wait'],
    load: async () => (await import('./verbs/rollout.ts')).runResume,
  }),
];

export const SOURCE_VERBS: readonly Verb[] = [
  verb('status', 'Show which commit is in force, which is the newest, and what differs', {
    options: [shared.OUTPUT],
    load: async () => (await import('./verbs/source.ts')).runSourceStatus,
  }),
  verb('sync', 'Fetch, apply the newest commit and put local edits back (exit code 1 if they are not in force then)', {
    options: [option('--force', 'Apply the commit outside of the change windows as well'), shared.OUTPUT],
    load: async () => (await import('./verbs/source.ts')).runSourceSync,
  }),
  verb('diff', 'Show what a sync would change, by the newest commit that was fetched (exit code 2 if anything)', {
    load: async () => (await import('./verbs/source.ts')).runSourceDiff,
  }),
  verb('suspend', 'Fetch, apply and put back nothing until it is resumed', {
    load: async () => (await import('./verbs/source.ts')).runSuspend,
  }),
  verb('resume', 'End a suspension', {
    load: async () => (await import('./verbs/source.ts')).runSourceResume,
  }),
];
