/**
 * Argon2id hashes of tokens, with the parameters that OWASP recommends for passwords; token secrets are far stronger.
 */
import { randomBytes } from 'node:crypto';
import { messageOf } from '../platform/error-text.ts';
import { formatToken, ID_BYTES, SECRET_BYTES } from './decide/token-file-text.ts';

/** https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#argon2id */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

/** A hash with the parameters above that nothing matches, for ids that do not exist. */
export const DUMMY_HASH = '$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';

export interface NewToken {
  readonly id: string;
  /** As it is shown to the user, once. */
  readonly token: string;
  readonly hash: string;
}

/** Works in a thread of libuv's pool. */
export async function createToken(): Promise<NewToken> {
  const id = randomBytes(ID_BYTES).toString('hex');
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  const { argon2id, hash } = await loadArgon2();
  return { id, token: formatToken({ id, secret }), hash: await hash(secret, { ...PARAMETERS, type: argon2id }) };
}

/** False also for a hash that cannot be used: somebody has edited it. */
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
