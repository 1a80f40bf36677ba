/** Edits SlotSpecs. The program's schema checks an edit before the server does, which silently drops unknown keys. */
import type { KubeApi, KubeManifest, KubeObject, Reflector } from '../client/ports.ts';
import { SLOT_SPECS } from '../client/decide/resource-path.ts';
import { ok, type Failure, type Result } from '../../schema/words/failure.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { SlotName } from '../../schema/words/names.ts';
import { FIELD_MANAGER } from '../../schema/pod/kube-fields.ts';
import { mergePatch, type EditOptions, type EditResult, type SlotEditor } from '../../schema/slot/slot-editor.ts';
import { parseSlot } from '../../schema/slot/slot-spec.ts';
import { findDropped, patchBetween, storedSlot, versionOf, parseRejection } from './decide/edit-resource.ts';
import { describeOlder } from './decide/slot-resource-status.ts';

interface ResourceEditorOptions {
  readonly api: Pick<KubeApi, 'namespace' | 'get' | 'create' | 'mergePatch' | 'apply' | 'remove'>;
  readonly slots: Pick<Reflector, 'items' | 'noteWritten' | 'noteRemoved'>;
}

/** A healthy API server answers within milliseconds. */
const ANSWER_WITHIN_MS = 20_000;
/** Each status that is published during an edit causes one conflict. */
const MOST_ATTEMPTS = 8;

export function createResourceEditor(options: ResourceEditorOptions): SlotEditor {
  const { api, slots } = options;
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
      // The copy lags behind: another replica may just have created the slot.
      const found = await find(api, name, AbortSignal.timeout(ANSWER_WITHIN_MS));
      return found.ok && found.value !== undefined ? storedSlot(name, found.value) : undefined;
    },
    put: async (name, document, edits = {}) =>
      await edit(options, name, (present) => (present === undefined && edits.ifMatch !== undefined ? undefined : document), edits),
    patch: async (name, patch, edits = {}) =>
      await edit(options, name, (present) => (present === undefined ? undefined : mergePatch(present['spec'], patch)), edits),
    async remove(name, edits = {}) {
      const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
      const found = await find(api, name, signal);
      if (!found.ok) return failed(name, found.failure);
      const present = found.value;
      if (present === undefined) return { kind: 'not-found' };
      const conflict = findConflict(present, edits);
      if (conflict !== undefined) return conflict;
      const { uid } = present.metadata;
      if (edits.dryRun !== true) {
        const removed = await api.remove(SLOT_SPECS, name, uid === undefined ? {} : { uid }, signal);
        if (!removed.ok) return failed(name, removed.failure);
        if (uid !== undefined) slots.noteRemoved(name, uid);
      }
      return done(name, present, false);
    },
  };
}

/** `change` returns the new document, or undefined if there is nothing to edit. */
async function edit(
  { api, slots }: ResourceEditorOptions,
  name: SlotName,
  change: (present: KubeObject | undefined) => unknown,
  edits: EditOptions,
): Promise<EditResult> {
  const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
  for (let attempts = 1; ; attempts++) {
    const found = await find(api, name, signal);
    if (!found.ok) return failed(name, found.failure);
    const present = found.value;
    const conflict = findConflict(present, edits);
    if (conflict !== undefined) return conflict;
    const document = change(present);
    if (document === undefined) return { kind: 'not-found' };
    // Edits arrive over HTTP, with keys in snake_case.
    const checked = parseSlot(name, document);
    if (!checked.ok) return { kind: 'invalid', problems: checked.problems };
    const spec = present === undefined ? document : patchBetween(present['spec'], document);
    if (present !== undefined && spec === undefined) return done(name, present, false);
    const dryRun = { fieldManager: `${FIELD_MANAGER}-edits`, dryRun: true };
    const written =
      edits.dryRun === true
        ? await api.apply(SLOT_SPECS, { metadata: { name }, spec: document }, dryRun, signal)
        : await write(api, present, { metadata: { name }, spec }, signal);
    if (written.ok && edits.dryRun === true) {
      const resourceVersion = present === undefined ? '' : versionOf(present);
      const slot = { name, document: isTable(document) ? document : undefined, resourceVersion };
      return { kind: 'done', created: present === undefined, slot };
    }
    if (written.ok) {
      slots.noteWritten(written.value);
      const dropped = findDropped(document, written.value['spec']);
      if (dropped.length > 0) return { kind: 'failed', message: describeOlder(dropped) };
      return done(name, written.value, present === undefined);
    }
    if (!isRace(written.failure) || attempts === MOST_ATTEMPTS) return failed(name, written.failure);
  }
}

type EditorApi = ResourceEditorOptions['api'];

async function find(api: EditorApi, name: SlotName, signal: AbortSignal): Promise<Result<KubeObject | undefined>> {
  const found = await api.get(SLOT_SPECS, name, signal);
  return !found.ok && found.failure.reason === 'NotFound' ? ok(undefined) : found;
}

/** Creates the resource, or merges the spec, so that labels and annotations of other clients stay. */
async function write(api: EditorApi, present: KubeObject | undefined, manifest: KubeManifest, signal: AbortSignal) {
  if (present === undefined) return await api.create(SLOT_SPECS, manifest, signal);
  const { name, resourceVersion } = present.metadata;
  return await api.mergePatch(SLOT_SPECS, name, { metadata: { resourceVersion }, spec: manifest['spec'] }, signal);
}

const done = (name: SlotName, object: KubeObject, created: boolean): EditResult => ({
  kind: 'done',
  created,
  slot: storedSlot(name, object),
});

function findConflict(present: KubeObject | undefined, { ifMatch }: EditOptions): EditResult | undefined {
  if (ifMatch === undefined || ifMatch === '*' || present === undefined) return undefined;
  const resourceVersion = versionOf(present);
  return ifMatch === resourceVersion ? undefined : { kind: 'conflict', resourceVersion };
}

const isRace = ({ reason }: Failure): boolean => reason === 'Conflict' || reason === 'AlreadyExists' || reason === 'NotFound';

function failed(name: SlotName, { reason, message }: Failure): EditResult {
  if (reason === 'Invalid') return { kind: 'invalid', problems: parseRejection(message) };
  return { kind: 'failed', message: `Writing SlotSpec "${name}" failed: ${message}` };
}
