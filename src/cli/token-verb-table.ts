/** The verbs of the group "token" as data. */
import { SCOPE_MEANINGS, SCOPES } from '../schema/words/access.ts';
import { OUTPUTS } from './output/output.ts';
import type { Verb } from './verb.ts';

const MEANINGS = SCOPES.map((scope) => `${scope}: ${SCOPE_MEANINGS[scope]}`).join('; ');

const SECRET = {
  flags: '--secret <name>',
  help: 'In a cluster, without a token: Secret that contains the tokens (default: $SVC_TOKENS_SECRET or svc-tokens)',
};

export const TOKEN_VERBS: readonly Verb[] = [
  {
    name: 'create',
    help: 'Create a token and print it, once',
    options: [
      { flags: '--label <name>', help: 'Name of the token, for lists and logs', required: true },
      { flags: '--scope <scope>', help: `What the token allows. ${MEANINGS}`, default: 'v1-only', choices: SCOPES },
      { flags: '-o, --output <format>', help: 'Output format', default: 'table', choices: OUTPUTS },
      SECRET,
    ],
    examples: [
      'svcctl token create --label laptop',
      'svcctl token create --label ci --scope admin',
      'svcctl token create --label admin --scope admin -n svc',
    ],
    load: async () => (await import('./verbs/token.ts')).runTokenCreate,
  },
  {
    name: 'list',
    help: 'List tokens without their secrets',
    options: [{ flags: '-o, --output <format>', help: 'Output format', default: 'table', choices: [...OUTPUTS, 'name'] }, SECRET],
    load: async () => (await import('./verbs/token.ts')).runTokenList,
  },
  {
    name: 'revoke',
    help: 'Revoke tokens; they are refused from the next request on',
    arguments: [{ name: '<ids...>', help: 'Ids of the tokens' }],
    options: [SECRET],
    load: async () => (await import('./verbs/token.ts')).runTokenRevoke,
  },
];
