/** The calls of the repository that declares the configuration, and edits of what it declares. */
import type { Authorize } from '../../../src/auth/check-token.ts';
import type { ConfigSource, SourceStatus } from '../../../src/schema/status/config-source.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import type { World } from '../manage/world.ts';
import { SPEC, type Call } from './slot-calls.ts';

const COMMIT = '1'.repeat(40);
const AT = '2027-01-01T00:00:00.000Z';
const SOURCE_STATUS: SourceStatus = {
  url: 'https://git.example.com/gpu-box.git',
  ref: 'main',
  path: '.',
  state: 'OutOfSync',
  self_heal: true,
  suspended: false,
  revision: COMMIT,
  applied_at: AT,
  head: { commit: '2'.repeat(40), subject: 'a mistake', author: 'Anna <anna@example.com>', at: AT },
  fetched_at: AT,
  held_until: null,
  problem: { reason: 'CommitInvalid', message: 'slots/x.toml:1:1: nothing', commit: '2'.repeat(40), since: AT },
  files: [{ path: 'slots/primary.toml', slot: SlotName.parse('primary'), state: 'OutOfSync', change: 'edited', revision: COMMIT }],
};
const SIGNED = { 'x-hub-signature-256': 'sha256=valid' };

function createInMemorySource(status: Partial<SourceStatus> = {}): ConfigSource & { readonly done: string[] } {
  const done: string[] = [];
  let present = { ...SOURCE_STATUS, ...status };
  return {
    done,
    status: async () => present,
    diff: async () => ({ commit: COMMIT, files: [{ path: 'slots/primary.toml', before: 'priority = 1\n', after: null }] }),
    async sync({ force }) {
      done.push(force ? 'sync by force' : 'sync');
      return present;
    },
    notify: () => void done.push('notify'),
    async setSuspended(suspended) {
      done.push(suspended ? 'suspend' : 'resume');
      return (present = { ...present, suspended });
    },
    commitOf: () => COMMIT,
    isSigned: async (body, signature) => body.toString() === '{"ref":"refs/heads/main"}' && signature === SIGNED['x-hub-signature-256'],
    isSynced: () => false,
  };
}

export function sourceCalls(world: () => World, authorize: (decide: Authorize) => void): readonly Call[] {
  const given =
    (status: Partial<SourceStatus> = {}) =>
    (): void =>
      void (world().source = createInMemorySource(status));
  const as = (scope: 'read-only' | undefined) => (): void => {
    given()();
    const caller = { key: 'caller', identity: 'anna', scope: scope ?? ('admin' as const) };
    authorize(() => (scope === undefined ? { ok: true } : { ok: true, caller }));
  };
  const admin =
    (status: Partial<SourceStatus> = {}) =>
    (): void => {
      given(status)();
      authorize(() => ({ ok: true, caller: { key: 'caller', identity: 'anna', scope: 'admin' } }));
    };
  const [status, sync] = ['GET /api/source', 'POST /api/source/sync'];
  const body = { ref: 'refs/heads/main' };
  return [
    { operation: status, expect: 200, prepare: given() },
    { operation: status, expect: 200, prepare: given({ revision: null, applied_at: null, head: null, problem: null, files: [] }) },
    { operation: status, expect: 'source.not_found' },
    { operation: 'GET /api/source/diff', expect: 200, prepare: given() },
    { operation: 'GET /api/source/diff', expect: 'source.not_found' },
    { operation: sync, expect: 200, body: { force: true }, prepare: admin() },
    { operation: sync, expect: 202, body, headers: SIGNED, prepare: given() },
    { operation: sync, expect: 'auth.required', body: { ref: 'other' }, headers: SIGNED, prepare: given() },
    { operation: sync, expect: 'auth.required', body: {}, prepare: as(undefined) },
    { operation: sync, expect: 'auth.scope', body: {}, prepare: as('read-only') },
    { operation: sync, expect: 'source.suspended', body: {}, prepare: admin({ suspended: true }) },
    { operation: sync, expect: 'source.not_found', body, headers: SIGNED },
    ...['suspend', 'resume'].flatMap((verb): readonly Call[] => [
      { operation: `POST /api/source/${verb}`, expect: 200, body: {}, prepare: given() },
      { operation: `POST /api/source/${verb}`, expect: 'source.not_found', body: {} },
    ]),
  ];
}

/** What would be put back is refused. */
export function managedCalls(world: () => World): readonly Call[] {
  const prepare = (): void => void (world().slots.managed = 'A repository declares the slot');
  const undo = (): void => {
    prepare();
    const document = { model: { default: 'b' } };
    const revision = (number: number) => ({
      number,
      at: 0,
      who: 'anna',
      outcome: 'served' as const,
      document: { ...document, priority: number },
    });
    world().revisions = { list: async () => [revision(1), revision(2)], attribute: () => undefined };
  };
  const slot = '/api/slots/{name}';
  return [
    { operation: `PUT ${slot}`, body: SPEC },
    { operation: `PATCH ${slot}`, body: SPEC },
    { operation: `DELETE ${slot}` },
    ...['load', 'unload', 'restart'].map((verb) => ({ operation: `POST ${slot}/${verb}`, body: {} })),
    { operation: 'POST /api/apply', body: { slots: [{ name: 'primary', ...SPEC }] } },
    { operation: `POST ${slot}/undo`, body: { to_revision: 1 }, prepare: undo },
  ].map((call) => ({ prepare, ...call, expect: 'source.managed' }));
}
