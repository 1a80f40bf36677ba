/** Creates, lists and revokes tokens, also before authentication is turned on, so that programs can get theirs. */
import { z } from 'zod';
import type { TokenManager } from '../../auth/manage-tokens.ts';
import { TokenLabel, TOKEN_ID } from '../../auth/decide/token-file-text.ts';
import { SCOPE_MEANINGS, SCOPES } from '../../schema/words/access.ts';
import { CALLER_LIMITS, limitsOf } from '../../schema/words/caller-limits.ts';
import { empty, json, ApiError } from '../server/answer.ts';
import { defineRoute, NoInput, type DocumentedRoute } from '../server/define-route.ts';

const MEANINGS = SCOPES.map((scope) => `\`${scope}\`: ${SCOPE_MEANINGS[scope]}`).join('; ');
const ScopeField = z.enum(SCOPES).describe(MEANINGS);
const Label = TokenLabel.describe('A name for people; the identity of requests with this token');
const Instant = z.iso.datetime({ offset: true });
const Limit = z.object(CALLER_LIMITS);
const facts = {
  id: z.string(),
  label: z.string(),
  scope: ScopeField,
  created_at: Instant,
  expires_at: Instant.nullable().describe('From then on, requests with the token get 401 `auth.expired`. null: never'),
  limits: Limit.describe('What the token may use. Keys that are absent limit nothing'),
};
/** What the API and `svcctl` accept. */
export const TokenEnd = Instant.refine((end) => Date.parse(end) > Date.now(), 'Use a time in the future');

export const Created = z.object({
  ...facts,
  token: z.string().describe('The whole token. It is shown only here'),
  warning: z.string(),
});
export const TokenFacts = z.object({
  ...facts,
  last_used_at: z.iso.datetime().nullable().describe('null: not used yet, or not recorded yet'),
});
export const Tokens = z.object({ tokens: z.array(TokenFacts) });

const WARNING = 'Store this token now: it is shown once and cannot be retrieved later';
const TokenParams = z.object({ id: z.string().regex(TOKEN_ID, 'Not the id of a token; use 8 hexadecimal characters') });

export function createTokenRoutes(tokens: TokenManager): readonly DocumentedRoute[] {
  return [listRoute(tokens), createRoute(tokens), editRoute(tokens), revokeRoute(tokens), beginRoute(tokens), checkRoute()];
}

function listRoute(tokens: TokenManager): DocumentedRoute {
  return defineRoute('GET', '/api/auth/tokens', 'admin', {
    tag: 'auth',
    summary: 'Tokens without their secrets, oldest first',
    input: NoInput,
    answers: { 200: json('Tokens, oldest first', Tokens) },
    handler: () => ({ status: 200, body: { tokens: tokens.list().map(viewToken) } }),
  });
}

export function viewToken({ createdAt, expiresAt, lastUsedAt, ...token }: ReturnType<TokenManager['list']>[number]) {
  const usedAt = lastUsedAt === undefined ? null : new Date(lastUsedAt).toISOString();
  return { ...token, created_at: createdAt, expires_at: expiresAt ?? null, last_used_at: usedAt };
}

function createRoute(tokens: TokenManager): DocumentedRoute {
  return defineRoute('POST', '/api/auth/tokens', 'admin', {
    tag: 'auth',
    summary: 'Creates a token and returns it, once',
    input: z.object({
      body: z.strictObject({
        label: Label,
        scope: ScopeField,
        expires_at: TokenEnd.optional().describe('When the token ends. Default: never'),
        ...CALLER_LIMITS,
      }),
    }),
    answers: { 200: json('The new token', Created) },
    errors: ['server.internal'],
    async handler({ body }) {
      const { label: name, scope: granted, expires_at: end } = body;
      const created = await tokens.create({ label: name, scope: granted, expiresAt: end, limits: limitsOf(body) });
      if (!created.ok) throw new ApiError('server.internal', created.message);
      const { id, label, scope, createdAt, expiresAt = null, limits, token } = created.value;
      return {
        status: 200,
        // No cache on the way may keep it.
        headers: { 'cache-control': 'no-store' },
        body: { id, label, scope, created_at: createdAt, expires_at: expiresAt, limits, token, warning: WARNING },
      };
    },
  });
}

/** `null` removes a limit. */
export const TokenLimitEdits = z.strictObject({
  models: CALLER_LIMITS.models.nullable(),
  requests_per_minute: CALLER_LIMITS.requests_per_minute.nullable(),
  tokens_per_minute: CALLER_LIMITS.tokens_per_minute.nullable(),
  tokens_per_day: CALLER_LIMITS.tokens_per_day.nullable(),
  max_in_flight: CALLER_LIMITS.max_in_flight.nullable(),
  max_output_tokens: CALLER_LIMITS.max_output_tokens.nullable(),
  weight: CALLER_LIMITS.weight.nullable(),
  priority: CALLER_LIMITS.priority.nullable(),
});

function editRoute(tokens: TokenManager): DocumentedRoute {
  return defineRoute('PATCH', '/api/auth/tokens/:id', 'admin', {
    tag: 'auth',
    summary: 'Changes the name, the end or the limits of a token; the next request with it is judged by them',
    input: z.object({
      params: TokenParams,
      body: z.strictObject({
        label: Label.optional(),
        expires_at: TokenEnd.nullish().describe('When the token ends. null: never. Default: unchanged'),
        ...TokenLimitEdits.shape,
      }),
    }),
    answers: { 200: json('The token as it is now', TokenFacts) },
    errors: ['token.not_found', 'server.internal'],
    async handler({ params: { id }, body: { label, expires_at: expiresAt, ...limits } }) {
      const edited = await tokens.edit(id, { label, expiresAt, limits });
      if (!edited.ok) throw new ApiError('server.internal', edited.message);
      if (edited.value === undefined) throw new ApiError('token.not_found', unknownToken(id));
      return { status: 200, body: viewToken(edited.value) };
    },
  });
}

const unknownToken = (id: string): string => `There is no token "${id}": list the tokens with "svcctl token list"`;

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
      if (!revoked.value) throw new ApiError('token.not_found', unknownToken(id));
      return { status: 204, body: undefined };
    },
  });
}

/**
 * A session of the chat page behind the proxy is a token of its own with this label before the name of its user, so it
 * is listed and revoked as every other. The installer revokes all of them with the password.
 */
const SESSION = 'chat session of ';
/** Each login begins one, also in a browser that has one already. */
const MOST_SESSIONS = 20;

function beginRoute(tokens: TokenManager): DocumentedRoute {
  return defineRoute('GET', '/api/auth/chat', 'admin', {
    tag: 'auth',
    summary: 'Begins a session of the chat page for the caller; the proxy asks here after the login at "/chat/"',
    input: NoInput,
    answers: { 204: empty('The session has begun', { 'Set-Cookie': 'The session' }) },
    errors: ['server.internal'],
    async handler(_input, { caller }) {
      const label = Label.safeParse(`${SESSION}${caller?.identity ?? ''}`);
      if (!label.success)
        throw new ApiError('request.invalid', 'The name of the user is too long for a session, or has control characters');
      const created = await tokens.create({ label: label.data, scope: 'v1-only', most: MOST_SESSIONS });
      if (!created.ok) throw new ApiError('server.internal', created.message);
      const cookie = `__Host-svc-chat=${created.value.token}; Path=/; Secure; HttpOnly; SameSite=Lax`;
      return { status: 204, headers: { 'set-cookie': cookie, 'cache-control': 'no-store' }, body: undefined };
    },
  });
}

function checkRoute(): DocumentedRoute {
  return defineRoute('GET', '/api/auth/session', 'v1', {
    tag: 'auth',
    summary: 'Names the user of a session of the chat page; the proxy asks here with the cookie of each request for the page',
    input: NoInput,
    answers: { 204: empty('The session lasts', { 'X-Forwarded-Email': 'Its user' }) },
    handler(_input, { caller: { identity } = { identity: '' } }) {
      if (!identity.startsWith(SESSION)) throw new ApiError('auth.invalid', 'The token is no session of the chat page: log in at "/chat/"');
      const user = identity.slice(SESSION.length);
      // The page wants an address; nobody sends mail to it.
      return { status: 204, headers: { 'x-forwarded-email': user.includes('@') ? user : `${user}@localhost` }, body: undefined };
    },
  });
}
