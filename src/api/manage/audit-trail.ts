/**
 * Records who changes what through the API: in the log, in the timeline of the slot, and in the list of changes. The
 * server runs each handler with `actAs`, so the wrapped editor and stores know the caller and no route can forget it.
 * Secrets are never recorded.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Caller } from '../../auth/decide/decide-access.ts';
import type { RunningRequests } from '../../gateway/exchange-deps.ts';
import type { TokenManager } from '../../auth/manage-tokens.ts';
import type { Log } from '../../platform/log.ts';
import type { SlotName } from '../../schema/words/names.ts';
import type { ProfileStore } from '../../schema/slot/profile-store.ts';
import type { RevisionStore } from '../../schema/slot/revision-store.ts';
import type { EditOptions, EditResult, SlotEditor, StoredSlot } from '../../schema/slot/slot-editor.ts';
import type { VoiceStore } from '../../schema/slot/voice-store.ts';
import type { ConfigSource } from '../../schema/status/config-source.ts';
import type { CaptureStore, Change } from '../../schema/status/resource-answers.ts';
import type { Manage } from '../ports.ts';
import type { ChangePlans } from '../mcp/change-plans.ts';
import { changesText, listChanges } from './decide/unsafe-edits.ts';

interface AuditedRequest {
  readonly id: string;
  readonly caller: Caller | undefined;
  readonly socket: { readonly remoteAddress?: string | undefined };
  /** The protocol, if it is not that of the API. */
  readonly via?: 'MCP';
}

export type ActAs = <T>(request: AuditedRequest, work: () => T) => T;

export type AuditTrail = ReturnType<typeof createAuditTrail>;

type ModelChanges = Pick<Manage, 'pullModel' | 'removeModel'>;

/** A change of a slot is noted in its timeline as well. */
type Facts = Readonly<Record<string, unknown>> & { readonly slot?: SlotName };

export interface AuditDeps {
  readonly log: Pick<Log, 'info'>;
  readonly keep: (change: Change) => void;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
  /** Default: no revisions are kept. */
  readonly attribute?: RevisionStore['attribute'] | undefined;
  readonly note: (slot: SlotName, entry: { readonly kind: 'edit'; readonly message: string; readonly cause: string }) => void;
}

export function createAuditTrail({ log, note, keep, wallNow, attribute }: AuditDeps) {
  const requests = new AsyncLocalStorage<AuditedRequest>();
  const actAs: ActAs = (request, work) => requests.run(request, work);

  const author = (): string => requests.getStore()?.caller?.identity ?? 'anyone';

  /** `did` continues a sentence that begins with who it was. */
  function record(what: string, facts: Facts): void {
    const request = requests.getStore();
    const via = request?.via;
    const did = via === undefined ? what : `through ${via} ${what}`;
    const who = author();
    const message = `"${who}" ${did}`;
    const requestId = request?.id ?? '';
    const { key: caller = null, scope = null } = request?.caller ?? {};
    const address = request?.socket.remoteAddress ?? null;
    log.info({ audit: true, who, scope, address, requestId, ...(via && { via }), ...facts }, message);
    const at = new Date(wallNow()).toISOString();
    keep({ at, who, caller, scope, address, request_id: requestId, slot: facts.slot ?? null, message: did });
    if (facts.slot !== undefined) note(facts.slot, { kind: 'edit', message, cause: `request ${requestId}` });
  }

  return {
    actAs,
    slots: (editor: SlotEditor): SlotEditor =>
      auditEditor(editor, record, ({ name, resourceVersion }, undoOf) => attribute?.(name, resourceVersion, { who: author(), undoOf })),
    tokens: (manager: TokenManager): TokenManager => ({
      ...manager,
      async create(wanted) {
        const created = await manager.create(wanted);
        if (created.ok) {
          const { id, label, scope } = created.value;
          record(`created the token "${id}" for "${label}" with the scope "${scope}"`, { token: id, label, tokenScope: scope });
        }
        return created;
      },
      async edit(id, edit) {
        const edited = await manager.edit(id, edit);
        if (edited.ok && edited.value !== undefined) {
          const { label, scope, expiresAt, limits } = edited.value;
          const now = { label, expiresAt: expiresAt ?? null, limits };
          record(`edited the token "${id}", which is now ${JSON.stringify(now)}`, { token: id, tokenScope: scope, ...now });
        }
        return edited;
      },
      async revoke(id) {
        const before = manager.list().find((token) => token.id === id);
        const revoked = await manager.revoke(id);
        if (revoked.ok && revoked.value) {
          const facts = { token: id, label: before?.label, tokenScope: before?.scope };
          record(`revoked the token "${id}" of "${before?.label ?? ''}" with the scope "${before?.scope ?? ''}"`, facts);
        }
        return revoked;
      },
    }),
    models: <Models extends ModelChanges>(models: Models): Models & ModelChanges => ({
      ...models,
      async pullModel(id, options) {
        const pulled = await models.pullModel(id, options);
        const accepted = pulled.ok ? (pulled.value?.accepted ?? []) : [];
        const also = accepted.length === 0 ? '' : `, and accepted what "${accepted.map(({ url }) => url).join('", "')}" has now`;
        if (pulled.ok) record(`asked for the model "${id}"${also}`, { model: id });
        return pulled;
      },
      async removeModel(id) {
        const removed = await models.removeModel(id);
        if (removed.ok && removed.value === 'removed') record(`removed the model "${id}"`, { model: id });
        return removed;
      },
    }),
    voices: (store: VoiceStore): VoiceStore => ({
      ...store,
      async add(voice) {
        const added = await store.add(voice);
        const { name, consent, recording } = voice;
        if (added.kind === 'added') record(`stored the voice "${name}"`, { voice: name, consent, bytes: recording.length });
        return added;
      },
      async remove(name) {
        const removed = await store.remove(name);
        if (removed) record(`deleted the voice "${name}"`, { voice: name });
        return removed;
      },
    }),
    running: (requests: RunningRequests): RunningRequests => ({
      ...requests,
      async cancel(id) {
        const cancelled = await requests.cancel(id);
        if (cancelled) record(`cancelled the request "${id}"`, { cancelled: id });
        return cancelled;
      },
    }),
    captures: (store: CaptureStore): CaptureStore => auditCaptures(store, record),
    source: (source: ConfigSource): ConfigSource => ({
      ...source,
      async sync(options) {
        record(`synced with the repository${options.force ? ', outside of the change windows' : ''}`, {});
        return await source.sync(options);
      },
      async setSuspended(suspended) {
        const status = await source.setSuspended(suspended);
        record(`${suspended ? 'suspended' : 'resumed'} the repository that declares the configuration`, {});
        return status;
      },
    }),
    profiles: (store: ProfileStore, editor: Pick<SlotEditor, 'read'>): ProfileStore =>
      auditProfiles(store, record, async (name) => {
        const stored = await editor.read(name);
        if (stored !== undefined) attribute?.(name, stored.resourceVersion, { who: author() });
      }),
    plans: (plans: ChangePlans): ChangePlans => ({
      ...plans,
      approve(id, caller) {
        const approved = plans.approve(id, caller);
        if (approved.ok) record(`approved the plan "${id}" of "${approved.plan.by.identity}"`, { plan: id });
        return approved;
      },
      reject(id, caller) {
        const rejected = plans.reject(id, caller);
        if (rejected.ok) record(`rejected the plan "${id}" of "${rejected.plan.by.identity}"`, { plan: id });
        return rejected;
      },
    }),
  };
}

type RecordChange = (did: string, facts: Facts) => void;

/** Also who has read one, although the file alone says nothing. */
function auditCaptures(store: CaptureStore, record: RecordChange): CaptureStore {
  const audited =
    <Done>(did: string, work: (id: string) => Promise<Done>) =>
    async (id: string): Promise<Done> => {
      const done = await work(id);
      if (done !== undefined && done !== false) record(`${did} the capture "${id}"`, { capture: id });
      return done;
    };
  return {
    ...store,
    async start(wish) {
      const started = await store.start(wish);
      if ('problem' in started) return started;
      const { caller, slot, requests, seconds } = wish;
      const whose = [...(caller === undefined ? [] : [`the caller "${caller}"`]), ...(slot === undefined ? [] : [`the slot "${slot}"`])];
      const did = `started the capture "${started.id}" of ${requests} requests of ${whose.join(' and ')}, for ${seconds} s at most`;
      record(did, { capture: started.id, capturedCaller: caller, capturedSlot: slot });
      return started;
    },
    stop: audited('stopped', store.stop),
    read: audited('read the file of', store.read),
    remove: audited('deleted', store.remove),
  };
}

/** A switch is recorded for each slot that it changes. */
function auditProfiles(store: ProfileStore, record: RecordChange, attribute: (slot: SlotName) => Promise<void>): ProfileStore {
  return {
    ...store,
    async save(name, options) {
      const saved = await store.save(name, options);
      if (saved.kind === 'saved') record(`${saved.created ? 'saved' : 'replaced'} the profile "${name}"`, { profile: name });
      return saved;
    },
    async remove(name) {
      const removed = await store.remove(name);
      if (removed === 'removed') record(`deleted the profile "${name}"`, { profile: name });
      return removed;
    },
    async apply(name, options) {
      const applied = await store.apply(name, options);
      if (applied.kind !== 'applied') return applied;
      for (const { name: slot, change, before, after } of applied.profile.slots) {
        if (change === 'unchanged') continue;
        const changes = listChanges(before, after);
        record(`${change} the slot "${slot}" with the profile "${name}": ${changesText(changes)}`, { slot, profile: name, changes });
        await attribute(slot);
      }
      return applied;
    },
  };
}

function auditEditor(editor: SlotEditor, record: RecordChange, attribute: (slot: StoredSlot, undoOf?: number) => void): SlotEditor {
  const audited = async (name: SlotName, edits: EditOptions, edit: () => Promise<EditResult>, isRemoval = false): Promise<EditResult> => {
    if (edits.dryRun === true) return await edit();
    const before = (await editor.read(name))?.document;
    const result = await edit();
    if (result.kind !== 'done') return result;
    if (!isRemoval) attribute(result.slot, edits.undoOf);
    const changes = listChanges(before, isRemoval ? undefined : result.slot.document);
    const verb = isRemoval ? 'deleted' : result.created ? 'created' : 'edited';
    const undo = edits.undoOf === undefined ? '' : ` (undo to revision ${edits.undoOf})`;
    const what = isRemoval || changes.length === 0 ? '' : `: ${changesText(changes)}`;
    if (changes.length > 0 || verb !== 'edited') record(`${verb} the slot "${name}"${undo}${what}`, { slot: name, changes });
    return result;
  };
  return {
    ...editor,
    put: async (name, document, edits = {}) => await audited(name, edits, async () => await editor.put(name, document, edits)),
    patch: async (name, patch, edits = {}) => await audited(name, edits, async () => await editor.patch(name, patch, edits)),
    remove: async (name, edits = {}) => await audited(name, edits, async () => await editor.remove(name, edits), true),
  };
}
