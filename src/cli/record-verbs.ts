/** The rows of `verb-table.ts` for what the service remembers. */
import * as shared from './shared-options.ts';
import { argument, option, verb, type Verb } from './verb.ts';

export const RECORD_VERBS: readonly Verb[] = [
  verb('requests', 'Show recent inference requests: callers, times, tokens, and why they were slow', {
    options: [
      option('--slot <name>', 'Only requests that this slot answered', { suggestions: 'slots' }),
      option('--caller <key>', 'Only requests of this caller, such as token:1a2b3c4d or user:anna@example.com'),
      option('--failed', 'Only requests that have failed'),
      option('--slow', 'Only requests that were slow; with --failed, those that have failed or were slow'),
      option('--limit <count>', 'Number of newest requests', { default: '50' }),
      option('-f, --follow', 'After the list, print each request when it has ended'),
      shared.OUTPUT_OR_NAME,
    ],
    examples: ['svcctl requests --slot primary --slow', 'svcctl requests --caller token:1a2b3c4d --follow'],
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
