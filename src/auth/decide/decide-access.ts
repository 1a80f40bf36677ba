/** Whether a caller may use a route. Pure. */
import { GRANTS, SCOPES, type Access, type Scope } from '../../schema/access.ts';

/** Who sends a request: the label of a token, or the e-mail address that a proxy forwards. */
export interface Caller {
  readonly identity: string;
  readonly scope: Scope;
}

export type AccessDecision =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: 'auth.required' | 'auth.invalid' | 'auth.scope' | 'auth.busy'; readonly message: string };

export const ALLOWED: AccessDecision = { ok: true };

export const REQUIRED: AccessDecision = {
  ok: false,
  code: 'auth.required',
  message: 'Send a token as "Authorization: Bearer svc_…": authentication is on, and the request has no credential',
};
export const INVALID: AccessDecision = {
  ok: false,
  code: 'auth.invalid',
  message: 'Use another token: this one is unknown, was revoked, or is not complete',
};
export const AMBIGUOUS: AccessDecision = {
  ok: false,
  code: 'auth.invalid',
  message: 'Send one token: "Authorization" and "x-api-key" contain different ones, or one of them was sent more than once',
};
export const BUSY: AccessDecision = {
  ok: false,
  code: 'auth.busy',
  message: 'Try again in a moment: too many tokens that were not used before are being checked',
};

/** A class that no scope is granted is denied to everyone. */
export function decideScope(access: Access, { scope }: Caller): AccessDecision {
  if (GRANTS[scope].includes(access)) return ALLOWED;
  const able = SCOPES.filter((other) => GRANTS[other].includes(access)).map((other) => `"${other}"`);
  return { ok: false, code: 'auth.scope', message: `Use a token with the scope ${able.join(' or ')}: this one has "${scope}"` };
}
