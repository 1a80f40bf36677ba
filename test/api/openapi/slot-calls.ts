/** The calls that all routes of a slot have in common, and those of its history. */
import type { Revision, RevisionStore } from '../../../src/schema/slot/revision-store.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import type { World } from '../manage/world.ts';

export interface Call {
  /** "GET /api/slots/{name}", as in the document. */
  readonly operation: string;
  /** The status, or the code of the error. */
  readonly expect: number | string;
  /** Default: the path of the operation, with "primary" as the name of the slot. */
  readonly path?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Brings the world into the state that the call needs. */
  readonly prepare?: () => void | Promise<void>;
  /** The body ends only with the connection; its beginning is enough. */
  readonly endless?: boolean;
}

type CallOfSlot = Omit<Call, 'operation'>;
type SlotCalls = (operation: string, ...errors: readonly CallOfSlot[]) => readonly Call[];

export const SPEC = { spec: { model: { default: 'b' } } };
export const STALE = { 'if-match': '"other"' };

/** Each call, one of a slot that does not exist, and one before the first pass. */
export const createSlotCalls =
  (beforeFirstPass: () => void): SlotCalls =>
  (operation, ...errors) => {
    const missing: Call = {
      operation,
      expect: 'slot.not_found',
      path: operation.split(' ')[1]?.replace('{name}', 'none') ?? '',
      ...(operation.startsWith('GET') || operation.startsWith('DELETE') ? {} : { body: operation.startsWith('POST') ? {} : SPEC }),
      ...(operation.startsWith('PUT') ? { headers: STALE } : {}),
    };
    const early: readonly Call[] = operation.startsWith('PUT') ? [] : [{ ...missing, expect: 'server.starting', prepare: beforeFirstPass }];
    return [...errors.map((error) => ({ operation, ...error })), missing, ...early];
  };

const PRIMARY = SlotName.parse('primary');
const KEPT: readonly Revision[] = [
  { number: 1, at: 0, who: 'anna', outcome: 'served', document: { model: { default: 'b' } } },
  { number: 2, at: 1000, who: 'file', undoOf: 1, outcome: 'pending', document: { model: { default: 'c' } } },
];

export function revisionCalls(world: () => World, slot: SlotCalls): readonly Call[] {
  const store: RevisionStore = { list: async () => KEPT, attribute: () => undefined };
  const keep = (): void => void (world().revisions = store);
  const text = (toml: string) => (): void => void world().slots.texts.set(PRIMARY, toml);
  const pause = text('[model]\ndefault = "a"\n[rollout]\npaused = true\n');
  return [
    ...slot('GET /api/slots/{name}/revisions', { expect: 200 }, { expect: 200, prepare: keep }),
    ...slot(
      'POST /api/slots/{name}/undo',
      { expect: 200, body: { to_revision: 1 }, prepare: keep },
      { expect: 'slot.conflict', body: { to_revision: 1 }, headers: STALE, prepare: keep },
      { expect: 'revision.not_found', body: {} },
      { expect: 'slot.invalid', body: {}, prepare: text('broken') },
      { expect: 'rollout.paused', body: {}, prepare: pause },
      { expect: 'rollout.managed', body: {}, prepare: () => void (world().revisions = { ...store, managerOf: async () => 'argocd' }) },
    ),
    ...['load', 'unload', 'restart'].map((verb): Call => ({
      operation: `POST /api/slots/{name}/${verb}`,
      expect: 'rollout.paused',
      prepare: pause,
    })),
  ];
}
