/** The question that every route asks before anything else. Who may do what is `auth`'s business; `src/main.ts` supplies the answer. */
import type { IncomingMessage } from 'node:http';
import type { Access } from './ports.ts';

export type AccessDecision =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: 'auth.required' | 'auth.invalid' | 'auth.scope'; readonly message: string };

/** An answer that needs no waiting is given at once: a promise on the hot path costs. */
export type Authorize = (access: Access, request: IncomingMessage) => AccessDecision | Promise<AccessDecision>;

const ALLOWED: AccessDecision = { ok: true };

/** For a gateway without authentication. */
export const allowAll: Authorize = () => ALLOWED;
