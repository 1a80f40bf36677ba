/** The access check, which runs before anything else on every route. The rules belong to `auth`; `src/main.ts` passes the check in. */
import type { IncomingMessage } from 'node:http';
import type { Access } from './ports.ts';

export type AccessDecision =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: 'auth.required' | 'auth.invalid' | 'auth.scope'; readonly message: string };

/** Returns a decision directly where it can, because a promise costs time on the hot path. */
export type Authorize = (access: Access, request: IncomingMessage) => AccessDecision | Promise<AccessDecision>;

/** The check of a service without authentication. */
export const allowEveryone: Authorize = () => ({ ok: true });
