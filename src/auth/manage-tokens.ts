/** Creates, lists and revokes tokens, for the API and `svcctl token create` and its siblings, which share one file. */
import { randomBytes } from 'node:crypto';
import type { Scope } from '../schema/words/access.ts';
import { limitsOf, type CallerLimits } from '../schema/words/caller-limits.ts';
import type { TokenChange, TokenStore, TokenUse } from './token-store.ts';
import { messageOf } from '../platform/error-text.ts';
import { checkedRow, formatToken, ID_BYTES, SECRET_BYTES, type TokenRow } from './decide/token-file-text.ts';

type Changed<T> = { readonly ok: true; readonly value: T } | Extract<TokenChange, { readonly ok: false }>;

/** `expiresAt`: ISO 8601. Default: never. */
type Wanted = Readonly<{ label: string; scope: Scope; expiresAt?: string | undefined; limits?: CallerLimits | undefined; most?: number }>;

/** `null` removes a limit or the end; what is absent stays. */
type TokenEdit = Readonly<{ label?: string | undefined; expiresAt?: string | null | undefined; limits?: LimitEdits | undefined }>;
type LimitEdits = { readonly [Key in keyof CallerLimits]?: CallerLimits[Key] | null };

export type TokenManager = ReturnType<typeof createTokenManager>;

interface TokenManagerOptions extends Pick<TokenUse, 'lastUses'> {
  readonly store: TokenStore;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
}

export function createTokenManager({ store, lastUses, wallNow }: TokenManagerOptions) {
  return {
    /** `most`: so many tokens with this label stay, the newest ones. Default: all. `token` is not stored anywhere. */
    async create({ label, scope, expiresAt, limits = {}, most = Number.POSITIVE_INFINITY }: Wanted) {
      const { id, token, hash } = await createToken();
      const createdAt = new Date(wallNow()).toISOString();
      const changed = await store.change((tokens) => {
        const same = [...tokens]
          .filter(([, row]) => row.label === label)
          .toSorted(([, one], [, other]) => one.created_at.localeCompare(other.created_at));
        const surplus = new Set(same.slice(0, Math.max(0, same.length + 1 - most)).map(([other]) => other));
        const row = { label, scope, created_at: createdAt, ...(expiresAt === undefined ? {} : { expires_at: expiresAt }), ...limits, hash };
        return new Map([...[...tokens].filter(([other]) => !surplus.has(other)), [id, row]]);
      });
      return changed.ok ? ({ ok: true, value: { id, label, scope, createdAt, expiresAt, limits, token } } as const) : changed;
    },
    /** Sorted by the time of creation. `lastUsedAt`: Unix milliseconds, undefined if the token was never used. */
    list() {
      const uses = lastUses();
      return [...store.current()]
        .map(([id, row]) => viewOf(id, row, uses.get(id)))
        .toSorted((left, right) => left.createdAt.localeCompare(right.createdAt) || left.id.localeCompare(right.id));
    },
    /** Undefined if there is no such token. */
    async edit(id: string, edit: TokenEdit): Promise<Changed<ReturnType<typeof viewOf> | undefined>> {
      let edited: TokenRow | undefined;
      const changed = await store.change((tokens) => {
        const row = tokens.get(id);
        edited = row && editedRow(row, edit);
        return edited === undefined
          ? tokens
          : new Map([...tokens].map(([other, each]) => [other, other === id && edited !== undefined ? edited : each]));
      });
      return changed.ok ? { ok: true, value: edited && viewOf(id, edited, lastUses().get(id)) } : changed;
    },
    /** False if there is no such token. */
    async revoke(id: string): Promise<Changed<boolean>> {
      let found = false;
      const changed = await store.change((tokens) => {
        found = tokens.has(id);
        return new Map([...tokens].filter(([other]) => other !== id));
      });
      return changed.ok ? { ok: true, value: found } : changed;
    },
  };
}

function viewOf(id: string, row: TokenRow, lastUsedAt: number | undefined) {
  const { label, scope, created_at: createdAt, expires_at: expiresAt } = row;
  return { id, label, scope, createdAt, expiresAt, limits: limitsOf(row) ?? {}, lastUsedAt };
}

function editedRow({ hash, ...row }: TokenRow, { label = row.label, expiresAt, limits = {} }: TokenEdit): TokenRow {
  const ends = expiresAt === undefined ? {} : { expires_at: expiresAt };
  const entries = Object.entries({ ...row, label, ...ends, ...limits }).filter(([, value]) => value !== null && value !== undefined);
  return { ...checkedRow(Object.fromEntries(entries)), hash };
}

/** As for passwords: https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#argon2id */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

/** A hash with the parameters above that nothing matches, for ids that do not exist. */
export const DUMMY_HASH = '$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';

/** `token`: as it is shown to the user, once. Works in a thread of libuv's pool. */
export async function createToken(): Promise<Readonly<Record<'id' | 'token' | 'hash', string>>> {
  const id = randomBytes(ID_BYTES).toString('hex');
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  const { argon2id, hash } = await loadArgon2();
  return { id, token: formatToken({ id, secret }), hash: await hash(secret, { ...PARAMETERS, type: argon2id }) };
}

/** False also for an unusable hash, e.g. after an edit by hand. */
export async function matchesHash(hash: string, secret: string): Promise<boolean> {
  const { verify } = await loadArgon2();
  return await verify(hash, secret).catch(() => false);
}

/** Loaded with the first token, because it is native code that a service without authentication does not need. */
async function loadArgon2() {
  try {
    return (await import('argon2')).default;
  } catch (error) {
    throw new Error(`The package "argon2", which checks tokens, cannot be loaded: install the packages again (${messageOf(error)})`, {
      cause: error,
    });
  }
}
