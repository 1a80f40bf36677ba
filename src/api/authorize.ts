/** The access check, which runs before anything else on every route. The rules are in `auth/`; `wiring/create-api.ts` passes the check in. */
import type { Authorize } from '../auth/create-authorize.ts';
import { ALLOWED } from '../auth/decide/decide-access.ts';

/** The check of a service without authentication. */
export const allowEveryone: Authorize = () => ALLOWED;
