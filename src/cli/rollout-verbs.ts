/** Rows of `verb-table.ts` for the history of slots, as `kubectl rollout` names them, for upgrades and the source. */
import * as shared from './shared-options.ts';
import { option, verb, type Verb, type VerbGroup } from './verb.ts';

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

export const UPGRADE_VERBS: VerbGroup = {
  name: 'upgrade',
  help: 'Move slots to a new build of their model server',
  verbs: [
    verb('engine', 'Ask a new build for its flags, try each slot with it, and move slot by slot (exit code 1 if one does not move)', {
      arguments: [shared.PROVIDER],
      options: [
        option('--image <name>', 'New build as an image: "NAME@sha256:DIGEST" or "localhost/NAME:TAG"'),
        option('--path <file>', 'New build as a program, where slots run as processes', { path: true }),
        option('--undo', 'Return the slots that the last upgrade moved to the builds before'),
        option('--check', 'Change nothing: print what would break'),
        option('--slots <names>', 'Only these slots, separated by commas'),
        shared.TIMEOUT,
        shared.OUTPUT,
      ],
      examples: [
        'svcctl upgrade engine gguf --path /opt/llama.cpp/b11700/llama-server --check',
        'svcctl upgrade engine gguf --image localhost/llama-server:b11700 --slots primary,embed',
        'svcctl upgrade engine gguf --undo',
      ],
      load: async () => (await import('./verbs/upgrade.ts')).runUpgradeEngine,
    }),
  ],
};

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
