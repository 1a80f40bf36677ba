/** Edits of SlotSpecs. The schema of the program checks first, since the server takes unknown keys away without a word; then the server's own rules. */
import type { KubeApi, KubeObject, Reflector } from '../client/ports.ts';
import { SLOT_SPECS } from '../client/resource-types.ts';
import type { Failure, Result } from '../../schema/failure.ts';
import { isTable } from '../../schema/key-case.ts';
import { SlotName } from '../../schema/names.ts';
import { FIELD_MANAGER } from '../../schema/object-labels.ts';
import type { EditOptions, EditResult, SlotEditor, StoredSlot } from '../../schema/slot-editor.ts';
import { toResource } from '../../schema/slot-resource.ts';
import { parseSlot } from '../../schema/slot-spec.ts';
import { patchBetween, storedSlot, versionOf } from './decide/edit-resource.ts';
import { mergePatch } from '../../schema/merge-patch.ts';
import { readRefusal } from './decide/server-refusal.ts';

interface ResourceEditorOptions {
  readonly api: Pick<KubeApi, 'namespace' | 'get' | 'create' | 'mergePatch' | 'apply' | 'remove'>;
  readonly slots: Pick<Reflector, 'items' | 'noteWritten' | 'noteRemoved'>;
}

/** A healthy API server takes milliseconds. */
const ANSWER_WITHIN_MS = 20_000;
/** Each write of a status in between makes the server refuse ours once. */
const MOST_TRIES = 8;

export function createResourceEditor({ api, slots }: ResourceEditorOptions): SlotEditor {
  /** Undefined: there is none. */
  const find = async (name: SlotName, signal: AbortSignal): Promise<Result<KubeObject | undefined>> => {
    const found = await api.get(SLOT_SPECS, name, signal);
    return !found.ok && found.failure.reason === 'NotFound' ? { ok: true, value: undefined } : found;
  };

  /** `edit` answers the new document; undefined: there is nothing to edit. */
  const change = async (name: SlotName, edit: (present: KubeObject | undefined) => unknown, edits: EditOptions): Promise<EditResult> => {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    for (let tries = 1; ; tries++) {
      const found = await find(name, signal);
      if (!found.ok) return failed(name, found.failure);
      const present = found.value;
      const refused = checkVersion(present, edits);
      if (refused !== undefined) return refused;
      const document = edit(present);
      if (document === undefined) return { kind: 'not-found' };
      // Edits come over HTTP, whose keys are in snake_case in every world.
      const checked = parseSlot(name, document);
      if (!checked.ok) return { kind: 'invalid', problems: checked.problems };
      const patch = present === undefined ? document : patchBetween(present['spec'], document);
      if (present !== undefined && patch === undefined) return done(name, present, false);
      const written =
        edits.dryRun === true ? await tryOut(name, document, signal) : await write(name, present, isTable(patch) ? patch : {}, signal);
      if (written.ok) {
        if (edits.dryRun === true) return { kind: 'done', created: present === undefined, slot: unsaved(name, document, present) };
        slots.noteWritten(written.value);
        return done(name, written.value, present === undefined);
      }
      if (!isRace(written.failure) || tries === MOST_TRIES) return failed(name, written.failure);
    }
  };

  const write = async (name: SlotName, present: KubeObject | undefined, patch: Readonly<Record<string, unknown>>, signal: AbortSignal) => {
    if (present === undefined) {
      const { apiVersion, kind } = toResource(name, patch);
      return await api.create(SLOT_SPECS, { apiVersion, kind, metadata: { name, namespace: api.namespace }, spec: patch }, signal);
    }
    const { resourceVersion } = present.metadata;
    // Labels, annotations and whatever else others keep in it stay: only the spec is sent. Only while it is what was read.
    return await api.mergePatch(SLOT_SPECS, name, { metadata: { resourceVersion }, spec: patch }, signal);
  };

  /** The server's checks without a write. */
  const tryOut = async (name: SlotName, document: unknown, signal: AbortSignal) => {
    const { apiVersion, kind } = toResource(name, document);
    const manifest = { apiVersion, kind, metadata: { name, namespace: api.namespace }, spec: document };
    return await api.apply(SLOT_SPECS, manifest, { fieldManager: `${FIELD_MANAGER}-edits`, dryRun: true }, signal);
  };

  return {
    async list() {
      return [...slots.items()].flatMap(([key, object]) => {
        const name = SlotName.safeParse(key);
        return name.success && object.metadata.deletionTimestamp === undefined ? [storedSlot(name.data, object)] : [];
      });
    },
    async read(name) {
      const copied = slots.items().get(name);
      if (copied !== undefined) return copied.metadata.deletionTimestamp === undefined ? storedSlot(name, copied) : undefined;
      // The copy lags behind: another replica may just have made it.
      const found = await find(name, AbortSignal.timeout(ANSWER_WITHIN_MS));
      return found.ok && found.value !== undefined ? storedSlot(name, found.value) : undefined;
    },
    put: async (name, document, edits = {}) =>
      await change(name, (present) => (present === undefined && edits.ifMatch !== undefined ? undefined : document), edits),
    patch: async (name, patch, edits = {}) =>
      await change(name, (present) => (present === undefined ? undefined : mergePatch(present['spec'], patch)), edits),
    async remove(name, edits = {}) {
      const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
      const found = await find(name, signal);
      if (!found.ok) return failed(name, found.failure);
      const present = found.value;
      if (present === undefined) return { kind: 'not-found' };
      const refused = checkVersion(present, edits);
      if (refused !== undefined) return refused;
      const { uid } = present.metadata;
      if (edits.dryRun !== true) {
        const options = { propagation: 'Background', ...(uid === undefined ? {} : { uid }) } as const;
        const removed = await api.remove(SLOT_SPECS, name, options, signal);
        if (!removed.ok) return failed(name, removed.failure);
        if (uid !== undefined) slots.noteRemoved(name, uid);
      }
      return done(name, present, false);
    },
  };
}

function done(name: SlotName, object: KubeObject, created: boolean): EditResult {
  return { kind: 'done', created, slot: storedSlot(name, object) };
}

/** What a dry run shows. */
function unsaved(name: SlotName, document: unknown, present: KubeObject | undefined): StoredSlot {
  const resourceVersion = present === undefined ? '' : versionOf(present);
  return { name, document: isTable(document) ? document : undefined, resourceVersion };
}

function checkVersion(present: KubeObject | undefined, { ifMatch }: EditOptions): EditResult | undefined {
  if (ifMatch === undefined || ifMatch === '*' || present === undefined) return undefined;
  const resourceVersion = versionOf(present);
  return ifMatch === resourceVersion ? undefined : { kind: 'conflict', resourceVersion };
}

/** Somebody else wrote between our look and our write: look again. */
function isRace({ reason }: Failure): boolean {
  return reason === 'Conflict' || reason === 'AlreadyExists' || reason === 'NotFound';
}

function failed(name: SlotName, { reason, message }: Failure): EditResult {
  if (reason === 'Invalid') return { kind: 'invalid', problems: readRefusal(message) };
  return { kind: 'failed', message: `Writing SlotSpec "${name}" failed: ${message}` };
}
