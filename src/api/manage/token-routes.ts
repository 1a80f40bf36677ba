/**
 * Creates, lists and revokes tokens, also with authentication off, so that programs can get theirs before it is turned
 * on.
 */
import { z } from 'zod';
import type { TokenManager } from '../../auth/manage-tokens.ts';
import { TokenLabel, TOKEN_ID } from '../../auth/decide/token-file-text.ts';
import { SCOPE_MEANINGS, SCOPES } from '../../schema/words/access.ts';
import { empty, json, ApiError } from '../server/answer.ts';
import { defineRoute, NoInput, type DocumentedRoute } from '../server/define-route.ts';

const MEANINGS = SCOPES.map((scope) => `\`${scope}\`: ${SCOPE_MEANINGS[scope]}`).join('; ');
const ScopeField = z.enum(SCOPES).describe(MEANINGS);
const Label = TokenLabel.describe('A name for people; the identity of requests with this token');
const facts = { id: z.string(), label: z.string(), scope: ScopeField, created_at: z.iso.datetime({ offset: true }) };

export const Created = z.object({
  ...facts,
  token: z.string().describe('The whole token. It is shown only here'),
  warning: z.string(),
});
export const Tokens = z.object({
  tokens: z.array(z.object({ ...facts, last_used_at: z.iso.datetime().nullable().describe('null: not used yet, or not recorded yet') })),
});

const WARNING = 'Store this token now: it is shown once and cannot be retrieved later';
const TokenParams = z.object({ id: z.string().regex(TOKEN_ID, 'Not the id of a token; use 8 hexadecimal characters') });

export function createTokenRoutes(tokens: TokenManager): readonly DocumentedRoute[] {
  return [listRoute(tokens), createRoute(tokens), revokeRoute(tokens)];
}

function listRoute(tokens: TokenManager): DocumentedRoute {
  return defineRoute('GET', '/api/auth/tokens', 'admin', {
    tag: 'auth',
    summary: 'Tokens without their secrets, oldest first',
    input: NoInput,
    answers: { 200: json('Tokens, oldest first', Tokens) },
    handler: () => ({
      status: 200,
      body: {
        tokens: tokens.list().map(({ id, label, scope, createdAt, lastUsedAt }) => ({
          id,
          label,
          scope,
          created_at: createdAt,
          last_used_at: lastUsedAt === undefined ? null : new Date(lastUsedAt).toISOString(),
        })),
      },
    }),
  });
}

function createRoute(tokens: TokenManager): DocumentedRoute {
  return defineRoute('POST', '/api/auth/tokens', 'admin', {
    tag: 'auth',
    summary: 'Creates a token and returns it, once',
    input: z.object({ body: z.strictObject({ label: Label, scope: ScopeField }) }),
    answers: { 200: json('The new token', Created) },
    errors: ['server.internal'],
    async handler({ body }) {
      const created = await tokens.create(body);
      if (!created.ok) throw new ApiError('server.internal', created.message);
      const { id, label, scope, createdAt, token } = created.value;
      return {
        status: 200,
        // No cache on the way may keep it.
        headers: { 'cache-control': 'no-store' },
        body: { id, label, scope, created_at: createdAt, token, warning: WARNING },
      };
    },
  });
}

function revokeRoute(tokens: TokenManager): DocumentedRoute {
  return defineRoute('DELETE', '/api/auth/tokens/:id', 'admin', {
    tag: 'auth',
    summary: 'Revokes a token; it is refused from the next request on',
    input: z.object({ params: TokenParams }),
    answers: { 204: empty('The token is revoked') },
    errors: ['token.not_found', 'server.internal'],
    async handler({ params: { id } }) {
      const revoked = await tokens.revoke(id);
      if (!revoked.ok) throw new ApiError('server.internal', revoked.message);
      if (!revoked.value) throw new ApiError('token.not_found', `There is no token "${id}": list the tokens with "svcctl token list"`);
      return { status: 204, body: undefined };
    },
  });
}
