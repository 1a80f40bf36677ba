/** The calls of the routes for tokens, and what the store has before each. */
import type { InMemoryTokenStore } from '../manage/in-memory-tokens.ts';

const LIST = 'GET /api/auth/tokens';
const CREATE = 'POST /api/auth/tokens';
const EDIT = 'PATCH /api/auth/tokens/{id}';
const REVOKE = 'DELETE /api/auth/tokens/{id}';
const BEGIN = 'GET /api/auth/chat';
const CHECK = 'GET /api/auth/session';
const KNOWN_TOKEN = '1a2b3c4d';

const ROW = { label: 'ci', scope: 'all', created_at: '2026-01-01T00:00:00Z', hash: '$argon2id$v=19$m=8,t=1,p=1$AAAA$AAAA' } as const;

export interface TokenCall {
  readonly operation: string;
  readonly expect: number | string;
  readonly path?: string;
  readonly body?: unknown;
  /** Why no token can be changed. */
  readonly broken?: string;
}

const WANTED = { label: 'laptop', scope: 'v1-only' };
const FULL = 'Free space: the disk is full';

export const TOKEN_CALLS: readonly TokenCall[] = [
  { operation: CREATE, expect: 200, body: WANTED },
  { operation: CREATE, expect: 200, body: { ...WANTED, expires_at: '9999-12-31T00:00:00+01:00' } },
  { operation: CREATE, expect: 'request.invalid', body: { ...WANTED, expires_at: '2001-01-01T00:00:00Z' } },
  { operation: CREATE, expect: 'request.invalid', body: { ...WANTED, expires_at: 'tomorrow' } },
  { operation: CREATE, expect: 'request.invalid', body: { label: 'laptop' } },
  { operation: CREATE, expect: 'request.invalid', body: { label: 'laptop', scope: 'root' } },
  { operation: CREATE, expect: 'request.invalid', body: { label: ' ', scope: 'all' } },
  { operation: CREATE, expect: 'request.invalid', body: { ...WANTED, secret: 'mine' } },
  { operation: CREATE, expect: 'server.internal', body: WANTED, broken: FULL },
  { operation: LIST, expect: 200 },
  { operation: EDIT, expect: 'server.internal', path: `/api/auth/tokens/${KNOWN_TOKEN}`, body: { label: 'x' }, broken: FULL },
  { operation: EDIT, expect: 200, path: `/api/auth/tokens/${KNOWN_TOKEN}`, body: { max_in_flight: 4, models: null, expires_at: null } },
  { operation: EDIT, expect: 'token.not_found', path: '/api/auth/tokens/00000000', body: { label: 'x' } },
  { operation: EDIT, expect: 'request.invalid', path: `/api/auth/tokens/${KNOWN_TOKEN}`, body: { scope: 'admin' } },
  { operation: REVOKE, expect: 'server.internal', path: `/api/auth/tokens/${KNOWN_TOKEN}`, broken: FULL },
  { operation: REVOKE, expect: 204, path: `/api/auth/tokens/${KNOWN_TOKEN}` },
  { operation: REVOKE, expect: 'token.not_found', path: '/api/auth/tokens/00000000' },
  { operation: REVOKE, expect: 'request.invalid', path: '/api/auth/tokens/..%2Fpasswd' },
  { operation: BEGIN, expect: 204 },
  { operation: BEGIN, expect: 'server.internal', broken: FULL },
  { operation: CHECK, expect: 'auth.invalid' },
];

/** The store then has one token, and refuses changes if the call says so. */
export async function prepareTokens(store: InMemoryTokenStore, { broken }: TokenCall): Promise<void> {
  store.broken = undefined;
  await store.change(() => new Map([[KNOWN_TOKEN, ROW]]));
  store.broken = broken;
}
