/** The access check, which runs before anything else on every route. The rules are in `auth/`; `wiring/create-api.ts` passes the check in. */
import type { Authorize } from '../auth/create-authorize.ts';

/** The check of a service without authentication: everyone may do everything. */
export const allowEveryone: Authorize = () => EVERYONE;

const EVERYONE = { ok: true, caller: { identity: 'anyone', scope: 'admin' } } as const;
