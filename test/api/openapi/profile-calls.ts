/** The calls of the routes for profiles, and what each finds. */
import { ProfileName, SlotName } from '../../../src/schema/words/names.ts';
import type { ProfileStore } from '../../../src/schema/slot/profile-store.ts';
import type { World } from '../manage/world.ts';
import type { WorldProfiles } from '../manage/world-profiles.ts';

const LIST = 'GET /api/profiles';
const READ = 'GET /api/profiles/{name}';
const SAVE = 'PUT /api/profiles/{name}';
const APPLY = 'POST /api/profiles/{name}/apply';
const DELETE = 'DELETE /api/profiles/{name}';
const CODING = ProfileName.parse('coding');
const PRIMARY = SlotName.parse('primary');
const BROKEN = '[model]\ndefault = 5\n';

export interface ProfileCall {
  readonly operation: string;
  readonly expect: number | string;
  /** Default: that of the profile "coding". */
  readonly path?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** What there is before the call. Default: the present slots are saved as "coding". */
  readonly given?: 'none' | 'broken' | 'full' | 'no disk' | 'managed' | 'in a cluster';
}

const everywhere = (operation: string, body?: unknown): readonly ProfileCall[] => [
  { operation, expect: 'profile.unsupported', body, given: 'in a cluster' },
  ...(operation === LIST ? [] : [{ operation, expect: 'request.invalid', path: pathOf(operation, '..%2Fslots'), body }]),
  ...(operation === LIST || operation === SAVE ? [] : [{ operation, expect: 'profile.not_found', body, given: 'none' as const }]),
];

const CALLS: readonly ProfileCall[] = [
  { operation: LIST, expect: 200 },
  { operation: LIST, expect: 200, given: 'broken' },
  ...everywhere(LIST),
  { operation: READ, expect: 200 },
  { operation: READ, expect: 200, given: 'broken' },
  ...everywhere(READ),
  { operation: SAVE, expect: 201, given: 'none' },
  { operation: SAVE, expect: 201, given: 'none', body: { slots: [{ name: 'primary', spec: { model: { default: 'b' } } }] } },
  { operation: SAVE, expect: 200 },
  { operation: SAVE, expect: 'profile.conflict', headers: { 'if-none-match': '*' } },
  { operation: SAVE, expect: 'profile.invalid', given: 'broken' },
  { operation: SAVE, expect: 'slot.invalid', body: { slots: [{ name: 'primary', spec: {} }] } },
  { operation: SAVE, expect: 'request.invalid', body: { slots: [] } },
  { operation: SAVE, expect: 'profile.unsupported', given: 'full' },
  ...everywhere(SAVE),
  { operation: APPLY, expect: 200, body: {} },
  { operation: APPLY, expect: 200, body: { dry_run: true } },
  { operation: APPLY, expect: 'profile.conflict', body: {}, headers: { 'if-match': '"other"' } },
  { operation: APPLY, expect: 'profile.invalid', body: {}, given: 'broken' },
  { operation: APPLY, expect: 'server.internal', body: {}, given: 'no disk' },
  { operation: APPLY, expect: 'source.managed', body: {}, given: 'managed' },
  ...everywhere(APPLY, {}),
  { operation: DELETE, expect: 204 },
  ...everywhere(DELETE),
];

export const PROFILE_CALLS: readonly ProfileCall[] = CALLS.map((call) => ({ path: pathOf(call.operation, 'coding'), ...call }));

function pathOf(operation: string, name: string): string {
  return operation.split(' ')[1]?.replace('{name}', name) ?? '';
}

export async function prepareProfiles(world: World, profiles: WorldProfiles, given: ProfileCall['given']): Promise<void> {
  await profiles.clear();
  if (given === 'none') return;
  await profiles.store.save(CODING);
  if (given === 'broken') {
    await profiles.write('coding/primary.toml', BROKEN);
    world.slots.texts.set(PRIMARY, BROKEN);
  }
  if (given === 'full')
    world.profiles = {
      ...profiles.store,
      save: async () => ({ kind: 'full', limit: 1 }) satisfies Awaited<ReturnType<ProfileStore['save']>>,
    };
  if (given === 'in a cluster') world.profiles = undefined;
  if (given === 'no disk' || given === 'managed') {
    if (given === 'managed') world.slots.managed = 'A repository declares the slot';
    else world.slots.broken = 'The disk is full';
    world.slots.texts.set(PRIMARY, '[model]\ndefault = "z"\n');
  }
}
