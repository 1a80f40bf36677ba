/** The role of an identity that a proxy forwards. */
import { describe, expect, test } from '@jest/globals';
import { decideIdentity } from '../../../src/auth/decide/decide-access.ts';
import { parseSettings } from '../../../src/schema/settings/settings.ts';

function rolesOf(text?: string) {
  const parsed = parseSettings(text === undefined ? {} : { SVC_IDENTITY_ROLES: text });
  if (!parsed.ok) throw new Error(parsed.problems.join());
  return parsed.settings.SVC_IDENTITY_ROLES;
}

const ROLES = 'Anna@example.com=admin, *@example.com=v1-only,bot=read-only';
const EVERYONE = `${ROLES},*=all`;

describe('the role of a forwarded identity', () => {
  test.each([
    ['anna@example.com', ROLES, 'admin'],
    ['ANNA@Example.com', ROLES, 'admin'],
    ['ben@example.com', ROLES, 'v1-only'],
    ['bot', ROLES, 'read-only'],
    ['ben@example.com.evil.test', ROLES, undefined],
    ['ben@sub.example.com', ROLES, undefined],
    ['anna@example.com@evil.test', ROLES, undefined],
    ['example.com', ROLES, undefined],
    ['constructor', ROLES, undefined],
    ['__proto__', ROLES, undefined],
    ['anna@example.com=admin', ROLES, undefined],
    ['carl@other.test', EVERYONE, 'all'],
    ['anna@example.com', EVERYONE, 'admin'],
    ['*', ROLES, undefined],
    ['anyone', '', undefined],
    ['anyone', undefined, 'admin'],
  ])('of "%s" with "%s" is %s', (identity, roles, scope) => {
    const decision = decideIdentity('any', identity, { roles: rolesOf(roles) });
    expect(decision.ok ? decision.caller : decision.code).toEqual(
      scope === undefined ? 'auth.scope' : { key: `user:${identity.toLowerCase()}`, identity, scope },
    );
  });

  test('permits what its scope permits, and a refusal says what to do', () => {
    expect(decideIdentity('admin', 'ben@example.com', { roles: rolesOf(ROLES) })).toMatchObject({ ok: false, code: 'auth.scope' });
    expect(decideIdentity('v1', 'ben@example.com', { roles: rolesOf(ROLES) })).toMatchObject({ ok: true });
    expect(decideIdentity('read', 'carl', { roles: rolesOf(ROLES) })).toMatchObject({
      message: '"carl" has no role: give it one in "SVC_IDENTITY_ROLES" (chart: "auth.identityRoles")',
    });
  });

  test.each(['anna', 'anna=', '=admin', 'anna=root', '*.example.com=admin', 'a*=all'])('"%s" is refused in the setting', (entry) => {
    const parsed = parseSettings({ SVC_IDENTITY_ROLES: entry });
    expect(parsed).toEqual({ ok: false, problems: [expect.stringContaining(`not "${entry}"`)] });
  });
});
