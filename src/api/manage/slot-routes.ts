/** Slots over HTTP. Every change here edits the desired state; nothing is started or stopped directly. */
import { z } from 'zod';
import { tableAt } from '../../schema/pod/kube-fields.ts';
import { toCamelCase } from '../../schema/words/key-case.ts';
import type { BoardSlot } from '../../reconciler/board.ts';
import { ModelId, type SlotName } from '../../schema/words/names.ts';
import type { EditResult, SlotPatch } from '../../schema/slot/slot-editor.ts';
import { empty, json, ApiError } from '../server/answer.ts';
import { defineRoute, NoInput, type DocumentedRoute } from '../server/define-route.ts';
import { Slot, SlotList } from '../../schema/status/answers.ts';
import { SlotText } from '../../schema/status/resource-answers.ts';
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

function readRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  const view = rememberViews();
  return [
    defineRoute('GET', '/api/slots', 'read', {
      tag: 'slots',
      summary: 'All slots with their documents and status',
      input: NoInput,
      answers: { 200: json('All slots', SlotList) },
      async handler() {
        const stored = new Map((await deps.manage.editor.list()).map((slot) => [slot.name, slot]));
        const board = deps.board.current();
        const names = new Set<SlotName>([...stored.keys(), ...board.slots.keys(), ...board.refused.keys()]);
        const slots = [...names].sort().flatMap((name) => view(name, stored.get(name), board) ?? []);
        return { status: 200, body: { slots } };
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
