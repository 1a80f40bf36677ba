import { expect, test } from '@jest/globals';
import { decideScope } from '../../../src/auth/decide/decide-access.ts';
import { ACCESS_CLASSES, SCOPES } from '../../../src/schema/words/access.ts';

/** What the specification says, as a table of its own. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  any: ['admin', 'all', 'v1-only', 'read-only'],
  read: ['admin', 'all', 'read-only'],
  v1: ['admin', 'all', 'v1-only'],
  all: ['admin', 'all'],
  admin: ['admin'],
};

test.each(ACCESS_CLASSES.filter((access) => access !== 'open').flatMap((access) => SCOPES.map((scope) => [access, scope] as const)))(
  'a route of class "%s" and a token with scope "%s"',
  (access, scope) => {
    const decision = decideScope(access, { key: 'caller', identity: 'ci', scope });
    expect(decision.ok).toBe(ALLOWED[access]?.includes(scope));
    if (!decision.ok)
      expect(decision).toMatchObject({ code: 'auth.scope', message: expect.stringContaining(`The token has the scope "${scope}"`) });
  },
);
