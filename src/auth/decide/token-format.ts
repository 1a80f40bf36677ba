/** The form of a token: `svc_<id>.<secret>`, with an id of 8 hexadecimal characters and a secret of 32 random bytes in base64url. Pure. */

export interface TokenParts {
  readonly id: string;
  readonly secret: string;
}

const TOKEN = /^svc_([0-9a-f]{8})\.([A-Za-z0-9_-]{43})$/;
export const TOKEN_ID = /^[0-9a-f]{8}$/;
export const SECRET_BYTES = 32;
export const ID_BYTES = 4;

/** Undefined if the text is no token. */
export function parseToken(text: string): TokenParts | undefined {
  // A longer text is not searched.
  const match = text.length > 64 ? null : TOKEN.exec(text);
  const [, id, secret] = match ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

export function formatToken({ id, secret }: TokenParts): string {
  return `svc_${id}.${secret}`;
}
