/** Slots over HTTP. Every change here edits the desired state; nothing is started or stopped directly. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { isSameValue } from '../../schema/words/same-value.ts';
import { tableAt } from '../../schema/pod/kube-fields.ts';
import { toCamelCase } from '../../schema/words/key-case.ts';
import type { BoardSlot, BoardView } from '../../reconciler/board.ts';
import { ModelId, type SlotName } from '../../schema/words/names.ts';
import type { EditResult, SlotPatch } from '../../schema/slot/slot-editor.ts';
import { empty, hasVersion, json, ApiError } from '../server/answer.ts';
import { defineRoute, type DocumentedRoute } from '../server/define-route.ts';
import { createBreather } from '../../platform/slices.ts';
import { Slot } from '../../schema/status/answers.ts';
import { SlotPage } from '../../schema/status/slot-lists.ts';
import { SlotText } from '../../schema/status/resource-answers.ts';
import { createChangeList } from './change-list.ts';
import { viewSlot } from './decide/slot-view.ts';
import { noSuchSlot, requireResumed, unwrapEdit, IfMatch, ifMatchOf, SlotParams } from './edit-outcome.ts';
import type { ManageDeps } from './manage-deps.ts';

/** Accepts a slot as `GET` returns it; only these keys are read. */
const SlotBody = z
  .looseObject({
    spec: z.record(z.string(), z.unknown()).describe('The slot’s keys, as in its TOML file'),
    text: z.string().optional().describe('The file with its comments; written as it is if it means the same as "spec"'),
    resource_version: z.string().nullable().optional().describe('Refuse the edit if the slot has changed since; same as "If-Match"'),
  })
  .describe('A slot');
const LoadBody = z.strictObject({
  model: ModelId.optional().describe('Becomes the slot’s default model'),
  force: z.boolean().optional().describe('Set the model even if nothing provides it'),
});
const NoBody = z.strictObject({});
const ListQuery = z.strictObject({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(10_000)
    .optional()
    .describe('The most slots in the answer, by name; "continue" leads to the next ones'),
  continue: z.string().max(100).optional().describe('As in the answer before'),
  fields: z.enum(['all', 'names']).optional().describe('"names": slots without documents and status. Default: "all"'),
  since: z
    .string()
    .max(100)
    .optional()
    .describe('"version" of an earlier answer: only slots that have changed, and the names of those that are gone'),
});
const IfChanged = z.object({
  'if-none-match': z.string().optional().describe('"ETag" of an earlier answer to the same request: 304 if nothing has changed'),
});
const IfNoneMatch = IfMatch.extend({ 'if-none-match': z.string().optional().describe('"*": refuse the edit if the slot exists') });
const ETAG = { ETag: 'The resource version of the slot, in quotes' };

export function createSlotRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  return [...readRoutes(deps), ...editRoutes(deps), ...lifecycleRoutes(deps)];
}

/** A list describes only slots that have changed since the last one. */
function rememberViews(): typeof viewSlot {
  const views = new WeakMap<BoardSlot, { readonly of: string | undefined; readonly view: ReturnType<typeof viewSlot> }>();
  return (name, stored, board) => {
    const entry = board.slots.get(name);
    const known = entry && views.get(entry);
    if (known !== undefined && known.of === stored?.resourceVersion) return known.view;
    const view = viewSlot(name, stored, board);
    if (entry !== undefined) views.set(entry, { of: stored?.resourceVersion, view });
    return view;
  };
}

/** The first list of thousands of slots takes a second, and other requests must not wait for it. */
const SLICE_MS = 2;

/** Pages ask for changes all the time, and a look at thousands of files takes a while. */
const LISTED_MS = 500;

type SlotAnswer = NonNullable<ReturnType<typeof viewSlot>>;

/** All slots by name, those with a document, a workload or a mistake. */
function createSlotReader({ manage, board, now }: ManageDeps) {
  const view = rememberViews();
  const breathe = createBreather({ sliceMs: SLICE_MS });
  let listed:
    | { readonly at: number; readonly of: BoardView; readonly slots: ReturnType<ManageDeps['manage']['editor']['list']> }
    | undefined;
  /** `maxAgeMs`: how old the documents may be. */
  return async (maxAgeMs: number): Promise<ReadonlyMap<SlotName, SlotAnswer>> => {
    const present = board.current();
    // After an edit there is a pass, which makes another board.
    if (listed?.of !== present || now() - listed.at >= maxAgeMs) listed = { at: now(), of: present, slots: manage.editor.list() };
    const stored = new Map((await listed.slots).map((slot) => [slot.name, slot]));
    const names = new Set<SlotName>([...stored.keys(), ...present.slots.keys(), ...present.refused.keys()]);
    const views = new Map<SlotName, SlotAnswer>();
    for (const name of [...names].sort()) {
      const found = view(name, stored.get(name), present);
      if (found !== undefined) views.set(name, found);
      await breathe();
    }
    return views;
  };
}

function pageOf<Item extends { readonly name: string }>(items: readonly Item[], limit: number | undefined, after: string | undefined) {
  const rest = after === undefined ? items : items.filter(({ name }) => name > after);
  const page = rest.slice(0, limit);
  return { slots: page, continue: page.length < rest.length ? (page.at(-1)?.name ?? null) : null };
}

function readRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  const readAll = createSlotReader(deps);
  const changes = createChangeList<SlotAnswer>(randomUUID().slice(0, 8), isSameValue);
  return [
    defineRoute('GET', '/api/slots', 'read', {
      tag: 'slots',
      summary: 'All slots with their documents and status, or a page of them, or what has changed',
      input: z.object({ query: ListQuery, headers: IfChanged }),
      answers: {
        200: json('The slots', SlotPage, { ETag: 'The version of the list, as a weak tag' }),
        304: empty('Nothing has changed', { ETag: 'The version of the list, as a weak tag' }),
      },
      async handler({ query: { limit, continue: after, fields, since }, headers }) {
        const { items, version, removed } = changes(await readAll(since === undefined ? 0 : LISTED_MS), since);
        // Weak, because the list may be compressed.
        const etag = { etag: `W/"${version}"` };
        if (hasVersion(headers['if-none-match'], etag.etag)) return { status: 304, body: undefined, headers: etag };
        const page = { ...pageOf(items, limit, after), version, removed };
        const body = fields === 'names' ? { ...page, slots: page.slots.map(({ name }) => ({ name })) } : page;
        return { status: 200, body, headers: etag };
      },
    }),
    defineRoute('GET', '/api/slots/:name', 'read', {
      tag: 'slots',
      summary: 'One slot',
      input: z.object({ params: SlotParams }),
      answers: { 200: json('The slot', Slot, ETAG) },
      errors: ['slot.not_found', 'server.starting'],
      handler: async ({ params }) => ({ status: 200, ...(await readSlot(deps, params.name)) }),
    }),
    defineRoute('GET', '/api/slots/:name/text', 'admin', {
      tag: 'slots',
      summary: 'The file of one slot as it was written, also if it cannot be parsed; not in a cluster',
      input: z.object({ params: SlotParams }),
      answers: { 200: json('The text', SlotText) },
      errors: ['slot.not_found', 'server.starting'],
      async handler({ params: { name } }) {
        const stored = await deps.manage.editor.read(name);
        if (stored === undefined) throw await noSuchSlot(deps, name);
        if (stored.text === undefined)
          throw new ApiError('slot.not_found', `Slot "${name}" is no file here: read it with "kubectl get slotspec ${name} -o yaml"`, {
            param: 'name',
          });
        return { status: 200, body: { text: stored.text, resource_version: stored.resourceVersion } };
      },
    }),
  ];
}

function editRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  const { editor } = deps.manage;
  return [
    defineRoute('PUT', '/api/slots/:name', 'admin', {
      tag: 'slots',
      summary: 'Replaces a slot’s document or creates the slot ("If-None-Match: *": creates only)',
      input: z.object({ params: SlotParams, headers: IfNoneMatch, body: SlotBody }),
      answers: { 200: json('The slot was replaced', Slot, ETAG), 201: json('The slot was created', Slot, ETAG) },
      errors: ['slot.not_found', 'slot.conflict', 'slot.invalid', 'source.managed'],
      async handler({ params: { name }, headers, body }) {
        const { text } = body;
        if (headers['if-none-match'] === '*' && (await editor.read(name)) !== undefined)
          throw new ApiError('slot.conflict', `Slot "${name}" exists already: edit it, or choose another name`, { param: 'name' });
        const done = unwrapEdit(
          name,
          await editor.put(name, toCamelCase(body.spec), {
            ...ifMatchOf(headers, body.resource_version),
            ...(text === undefined ? {} : { text }),
          }),
        );
        return { status: done.created ? 201 : 200, ...(await readSlot(deps, name)) };
      },
    }),
    defineRoute('PATCH', '/api/slots/:name', 'admin', {
      tag: 'slots',
      summary: 'Merges into a slot’s document (RFC 7396: null removes a key); keeps comments and order of the text',
      input: z.object({ params: SlotParams, headers: IfMatch, body: SlotBody }),
      answers: { 200: json('The slot was changed', Slot, ETAG) },
      errors: ['slot.not_found', 'slot.conflict', 'slot.invalid', 'source.managed', 'server.starting'],
      async handler({ params: { name }, headers, body }) {
        await requireDone(deps, name, await editor.patch(name, tableAt(toCamelCase(body.spec)), ifMatchOf(headers, body.resource_version)));
        return { status: 200, ...(await readSlot(deps, name)) };
      },
    }),
    defineRoute('DELETE', '/api/slots/:name', 'admin', {
      tag: 'slots',
      summary: 'Removes a slot’s document; its workload is drained and stopped',
      input: z.object({ params: SlotParams, headers: IfMatch }),
      answers: { 204: empty('The document was removed') },
      errors: ['slot.not_found', 'slot.conflict', 'source.managed', 'server.starting'],
      async handler({ params: { name }, headers }) {
        await requireDone(deps, name, await editor.remove(name, ifMatchOf(headers)));
        return { status: 204, body: undefined };
      },
    }),
  ];
}

function lifecycleRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  type Body = z.output<typeof LoadBody>;
  const errors = ['slot.not_found', 'slot.conflict', 'slot.invalid', 'rollout.paused', 'source.managed', 'server.starting'] as const;
  const lifecycle = (verb: string, summary: string, bodySchema: z.ZodType<Body>, patch: (body: Body) => SlotPatch): DocumentedRoute =>
    defineRoute('POST', `/api/slots/:name/${verb}`, 'admin', {
      tag: 'slots',
      summary,
      input: z.object({ params: SlotParams, headers: IfMatch, body: bodySchema }),
      answers: { 202: json('The document was changed, and the controller will act on it', Slot, ETAG) },
      errors: verb === 'load' ? [...errors, 'model.not_found'] : errors,
      async handler({ params: { name }, headers, body }) {
        const stored = await deps.manage.editor.read(name);
        if (stored !== undefined) requireResumed(stored);
        if (body.force !== true && stored !== undefined) await requireModel(deps, body.model);
        await requireDone(deps, name, await deps.manage.editor.patch(name, patch(body), ifMatchOf(headers)));
        if (verb === 'load') deps.manage.ask(name);
        return { status: 202, ...(await readSlot(deps, name)) };
      },
    });
  return [
    lifecycle('load', 'Enables the slot, optionally with another model; the controller loads it now', LoadBody, ({ model }) => ({
      enabled: true,
      ...(model === undefined ? {} : { model: { default: model } }),
    })),
    lifecycle('unload', 'Disables the slot; the controller drains and stops its workload', NoBody, () => ({ enabled: false })),
    lifecycle('restart', 'Makes the controller replace the slot’s workload; clears a stall', NoBody, () => ({
      restartedAt: new Date(deps.wallNow()).toISOString(),
    })),
  ];
}

/** Refuses a model that nothing provides. A store that has not answered yet may have it. */
async function requireModel({ manage }: ManageDeps, id: ModelId | undefined): Promise<void> {
  if (id === undefined) return;
  const found = await manage.model(id);
  if (!found.ok && found.failure.kind === 'stalled') throw new ApiError('model.not_found', found.failure.message, { param: 'model' });
}

/** Lists the known slots in the error if there is no slot of this name. */
async function requireDone(deps: ManageDeps, name: SlotName, result: EditResult): Promise<void> {
  if (result.kind === 'not-found') throw await noSuchSlot(deps, name);
  unwrapEdit(name, result);
}

async function readSlot(deps: ManageDeps, name: SlotName) {
  const stored = await deps.manage.editor.read(name);
  const body = viewSlot(name, stored, deps.board.current());
  if (body === undefined) throw await noSuchSlot(deps, name);
  return { body, headers: stored === undefined ? {} : { etag: `"${stored.resourceVersion}"` } };
}
