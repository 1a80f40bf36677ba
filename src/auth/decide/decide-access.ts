/** Whether a caller may use a route. Pure. */
import { GRANTS, SCOPES, type Access, type Scope } from '../../schema/access.ts';

/** Who sends a request: the label of a token, or the e-mail address that a proxy forwards. */
export interface Caller {
  readonly identity: string;
  readonly scope: Scope;
}

export type AccessDecision =
  /** The caller is not known where a route is open. */
  | { readonly ok: true; readonly caller?: Caller }
  | {
      readonly ok: false;
      readonly code: 'auth.required' | 'auth.invalid' | 'auth.scope' | 'auth.busy' | 'server.starting';
      readonly message: string;
    };

/** Root, or the user of the service, who could change the tokens as well. */
export const LOCAL: Caller = { identity: 'local', scope: 'admin' };

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
/** Not `INVALID`, which clients take for final. */
export const NOT_READY: AccessDecision = {
  ok: false,
  code: 'server.starting',
  message: 'Try again in a moment: the service has not read its tokens yet',
};

/** A class that no scope is granted is denied to everyone. */
export function decideScope(access: Access, caller: Caller): AccessDecision {
  const { scope } = caller;
  if (GRANTS[scope].includes(access)) return { ok: true, caller };
  const able = SCOPES.filter((other) => GRANTS[other].includes(access)).map((other) => `"${other}"`);
  return { ok: false, code: 'auth.scope', message: `Use a token with the scope ${able.join(' or ')}: this one has "${scope}"` };
}
