/** The verbs of the group "token" as data. */
import { SCOPE_MEANINGS, SCOPES } from '../schema/access.ts';
import { OUTPUTS } from './output/output.ts';
import type { Verb } from './verb.ts';

const MEANINGS = SCOPES.map((scope) => `${scope}: ${SCOPE_MEANINGS[scope]}`).join('; ');

export const TOKEN_VERBS: readonly Verb[] = [
  {
    name: 'create',
    help: 'Create a token and print it, once',
    options: [
      { flags: '--label <name>', help: 'Name of the token, for lists and logs', required: true },
      { flags: '--scope <scope>', help: `What the token allows. ${MEANINGS}`, default: 'v1-only', choices: SCOPES },
      { flags: '-o, --output <format>', help: 'Output format', default: 'table', choices: OUTPUTS },
    ],
    examples: ['svcctl token create --label laptop', 'svcctl token create --label ci --scope admin'],
    load: async () => (await import('./verbs/token.ts')).runTokenCreate,
  },
  {
    name: 'list',
    help: 'List tokens without their secrets',
    options: [{ flags: '-o, --output <format>', help: 'Output format', default: 'table', choices: [...OUTPUTS, 'name'] }],
    load: async () => (await import('./verbs/token.ts')).runTokenList,
  },
  {
    name: 'revoke',
    help: 'Revoke tokens; they are refused from the next request on',
    arguments: [{ name: '<ids...>', help: 'Ids of the tokens' }],
    load: async () => (await import('./verbs/token.ts')).runTokenRevoke,
  },
];
