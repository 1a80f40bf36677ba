/** The rows of `verb-table.ts` for what the service remembers. */
import * as shared from './shared-options.ts';
import { argument, option, verb, type Verb, type VerbGroup } from './verb.ts';

const CAPTURE = argument('<id>', 'Capture id');
const CAPTURE_VERBS: readonly Verb[] = [
  verb('start', 'Capture the next requests of a caller or slot with their answers, and print the key of the file once', {
    options: [
      option('--caller <key>', 'Only requests of this caller: token:1a2b3c4d, user:anna@example.com, or the label of a token'),
      option('--slot <name>', 'Only requests that this slot gets', { suggestions: 'slots' }),
      option('--requests <count>', 'End after this many requests, 1000 at most', { default: '10' }),
      option('--for <time>', 'End after this time at the latest, 1h at most', { default: '5m' }),
      shared.OUTPUT,
    ],
    examples: ['svcctl capture start --slot primary > capture.key', 'svcctl capture start --caller laptop --requests 1'],
    load: async () => (await import('./verbs/capture.ts')).runCaptureStart,
  }),
  verb('list', 'List captures that run, and those whose files are kept', {
    options: [shared.OUTPUT_OR_NAME],
    load: async () => (await import('./verbs/capture.ts')).runCaptureList,
  }),
  verb('show', 'Decrypt a capture and print its requests as lines of JSON (exit code 1 if some are missing or altered)', {
    arguments: [CAPTURE],
    options: [option('--key-file <path>', 'File with the key; "-" for standard input', { default: '-', path: true })],
    examples: ['svcctl capture show 0123456789abcdef --key-file capture.key | jq -r .request.body'],
    load: async () => (await import('./verbs/capture.ts')).runCaptureShow,
  }),
  verb('stop', 'End a capture and keep its file', {
    arguments: [CAPTURE],
    load: async () => (await import('./verbs/capture.ts')).runCaptureStop,
  }),
  verb('delete', 'Delete files of captures, also of those that run', {
    arguments: [{ ...CAPTURE, name: '<ids...>', help: 'Capture ids' }],
    load: async () => (await import('./verbs/capture.ts')).runCaptureDelete,
  }),
];

export const RECORD_VERBS: readonly (Verb | VerbGroup)[] = [
  { name: 'capture', help: 'Record the bodies of a few requests, encrypted and for a day', verbs: CAPTURE_VERBS },
  verb('requests', 'Show recent inference requests: callers, times, tokens, and why they were slow', {
    options: [
      option('--slot <name>', 'Only requests that this slot answered', { suggestions: 'slots' }),
      option('--caller <key>', 'Only requests of this caller, such as token:1a2b3c4d or user:anna@example.com'),
      option('--failed', 'Only requests that have failed'),
      option('--slow', 'Only requests that were slow; with --failed, those that have failed or were slow'),
      option('--limit <count>', 'Number of newest requests', { default: '50' }),
      option('-f, --follow', 'After the list, print each request when it has ended'),
      option('--in-flight', 'Requests that have not ended instead: those that wait, compute or are answered'),
      option('--cancel <id>', 'Cancel a request that has not ended: its client gets an error, its server stops'),
      shared.OUTPUT_OR_NAME,
    ],
    examples: ['svcctl requests --slot primary --slow', 'svcctl requests --caller token:1a2b3c4d --follow', 'svcctl requests --in-flight'],
    load: async () => (await import('./verbs/records.ts')).runRequests,
  }),
  verb('audit', 'Show who changed what through the API', {
    options: [
      option('--since <when>', 'Only changes from then on: a duration such as "7d", or a time (default: all)'),
      option('--by <who>', 'Only changes by this name, or by this caller, such as token:1a2b3c4d'),
      option('--limit <count>', 'Number of newest changes', { default: '100' }),
      shared.OUTPUT,
    ],
    examples: ['svcctl audit --since 7d', 'svcctl audit --by laptop -o json'],
    load: async () => (await import('./verbs/records.ts')).runAudit,
  }),
  verb('usage', 'Show requests, tokens and times of each caller, slot or model', {
    options: [
      option('--by <words>', 'What sums are for: token, model, slot, day or hour, or several of them, separated by commas', {
        default: 'token',
      }),
      option('--since <when>', 'Duration before now such as "7d", or a time', { default: '30d' }),
      option('--until <when>', 'The same for the end (default: now)'),
      shared.OUTPUT_OR_CSV,
    ],
    examples: ['svcctl usage', 'svcctl usage --by day,token --since 7d', 'svcctl usage --by token,model --since 2027-01-01 -o csv'],
    load: async () => (await import('./verbs/usage.ts')).runUsage,
  }),
];

/** Asks models, and so needs no more rights than they do. */
export const EVAL = verb('eval', 'Ask a model the cases of a file, and compare its answers (exit code 1 if too few are right)', {
  arguments: [argument('<model>', 'Name of a slot, of a model or of a preset', { suggestions: 'slots' })],
  options: [
    option('-f, --file <path>', 'File with a case in each line; "-" for standard input', { required: true, path: true }),
    option('--compare <model>', 'Ask this one afterwards, and print both beside each other', { suggestions: 'slots' }),
    option('--pass <share>', 'Least share of the cases that must pass, besides all required ones', { default: '1' }),
    shared.OUTPUT,
  ],
  examples: ['svcctl eval primary -f checks.jsonl', 'svcctl eval primary -f checks.jsonl --compare small --pass 0.9'],
  load: async () => (await import('./verbs/evaluate.ts')).runEval,
});

const PLAN = argument('<id>', 'Plan id, as in "svcctl mcp pending"');

export const MCP_VERBS: readonly Verb[] = [
  verb('pending', 'List plans of agents with all that they would change', {
    options: [shared.OUTPUT],
    load: async () => (await import('./verbs/mcp.ts')).runPending,
  }),
  verb('approve', 'Let an agent apply its plan within five minutes', {
    arguments: [PLAN],
    examples: ['svcctl mcp approve 1a2b3c4d'],
    load: async () => (await import('./verbs/mcp.ts')).runApprove,
  }),
  verb('reject', 'Make the token of a plan useless', {
    arguments: [PLAN],
    load: async () => (await import('./verbs/mcp.ts')).runReject,
  }),
];
