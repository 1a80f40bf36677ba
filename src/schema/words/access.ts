/** Who may call what: classes of routes, scopes of credentials, which scope covers which class; and priorities. */

/**
 * `open`: anyone. `any`: every credential, for images that were drawn for a client. `read`: what shows states and lists
 * without secrets. `v1`: the routes of OpenAI's API. `all`: reads that show more than lists. `admin`: everything else.
 */
export const ACCESS_CLASSES = ['open', 'any', 'read', 'v1', 'all', 'admin'] as const;
export type Access = (typeof ACCESS_CLASSES)[number];

export const SCOPES = ['admin', 'all', 'v1-only', 'read-only'] as const;
export type Scope = (typeof SCOPES)[number];
export const isScope = (text: string | undefined): text is Scope => SCOPES.some((scope) => scope === text);

/** What each scope covers besides open routes. Omitting a scope does not compile; an unlisted class is denied. */
export const GRANTS: Readonly<Record<Scope, readonly Access[]>> = {
  admin: ['any', 'read', 'v1', 'all', 'admin'],
  all: ['any', 'read', 'v1', 'all'],
  'v1-only': ['any', 'v1'],
  'read-only': ['any', 'read'],
};

export const SCOPE_MEANINGS: Readonly<Record<Scope, string>> = {
  admin: 'everything, including tokens',
  all: 'inference, and reads of slots, models and hardware',
  'v1-only': 'inference under /v1 only',
  'read-only': 'reads of status, metrics and lists only',
};

/** The socket through which `svcctl` reaches a service with authentication, as root or as the user of the service. */
export const LOCAL_SOCKET = 'api.sock';

/** The first ones are served first where requests wait: keys of a caller (`caller-limits.ts`). */
export const PRIORITIES = ['high', 'normal', 'low'] as const;
export type Priority = (typeof PRIORITIES)[number];
export const HIGHEST_WEIGHT = 100;
