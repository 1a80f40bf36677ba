/** Slots over HTTP. Every change here edits the desired state; nothing is started or stopped directly. */
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { isTable, toCamelCase } from '../../schema/key-case.ts';
import { ModelId, type SlotName } from '../../schema/names.ts';
import type { EditResult, SlotPatch } from '../../schema/slot-editor.ts';
import { ApiError } from '../api-error.ts';
import type { Route } from '../route.ts';
import { viewSlot } from './decide/slot-view.ts';
import { noSuchSlot, unwrapEdit } from './edit-outcome.ts';
import type { ManageDeps } from './manage-deps.ts';
import { bodyOf, ifMatchOf, slotNameOf } from './request-input.ts';

/** Accepts a slot as `GET` returns it; only `spec` and `resource_version` are read. */
const SlotBody = z
  .looseObject({
    spec: z.record(z.string(), z.unknown()).describe('The slot’s keys, as in its TOML file'),
    resource_version: z.string().nullable().optional().describe('Refuse the edit if the slot has changed since; same as "If-Match"'),
  })
  .describe('A slot');
const LoadBody = z.strictObject({ model: ModelId.optional().describe('Becomes the slot’s default model') });
const NoBody = z.strictObject({});

export function createSlotRoutes(deps: ManageDeps): readonly Route[] {
  return [...readRoutes(deps), ...editRoutes(deps), ...lifecycleRoutes(deps)];
}

function readRoutes(deps: ManageDeps): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/api/slots',
      access: 'read',
      tag: 'slots',
      summary: 'All slots with their documents and status',
      async handler() {
        const stored = new Map((await deps.manage.editor.list()).map((slot) => [slot.name, slot]));
        const board = deps.board.current();
        const names = new Set<SlotName>([...stored.keys(), ...board.slots.keys(), ...board.refused.keys()]);
        return { slots: [...names].sort().map((name) => viewSlot(name, stored.get(name), board)) };
      },
    },
    {
      method: 'GET',
      path: '/api/slots/:name',
      access: 'read',
      tag: 'slots',
      summary: 'One slot',
      handler: async (request, reply) => sendSlot(deps, slotNameOf(request), reply),
    },
  ];
}

function editRoutes(deps: ManageDeps): readonly Route[] {
  const { editor } = deps.manage;
  return [
    {
      method: 'PUT',
      path: '/api/slots/:name',
      access: 'admin',
      tag: 'slots',
      summary: 'Replaces a slot’s document or creates the slot ("If-None-Match: *": creates only)',
      schemas: { body: SlotBody },
      async handler(request, reply) {
        const name = slotNameOf(request);
        const body = bodyOf(request, SlotBody);
        if (request.headers['if-none-match'] === '*') await refuseExisting(deps, name);
        const done = unwrapEdit(name, await editor.put(name, toCamelCase(body.spec), ifMatchOf(request, body.resource_version)));
        return sendSlot(deps, name, reply.code(done.created ? 201 : 200));
      },
    },
    {
      method: 'PATCH',
      path: '/api/slots/:name',
      access: 'admin',
      tag: 'slots',
      summary: 'Merges into a slot’s document (RFC 7396: null removes a key); keeps comments and order of the text',
      schemas: { body: SlotBody },
      async handler(request, reply) {
        const name = slotNameOf(request);
        const body = bodyOf(request, SlotBody);
        await requireDone(deps, name, await editor.patch(name, patchOf(body.spec), ifMatchOf(request, body.resource_version)));
        return sendSlot(deps, name, reply);
      },
    },
    {
      method: 'DELETE',
      path: '/api/slots/:name',
      access: 'admin',
      tag: 'slots',
      summary: 'Removes a slot’s document; its workload is drained and stopped',
      async handler(request, reply) {
        const name = slotNameOf(request);
        await requireDone(deps, name, await editor.remove(name, ifMatchOf(request)));
        return reply.code(204).send();
      },
    },
  ];
}

function lifecycleRoutes(deps: ManageDeps): readonly Route[] {
  const lifecycle = <T>(verb: string, summary: string, body: z.ZodType<T>, patch: (body: T) => SlotPatch): Route => ({
    method: 'POST',
    path: `/api/slots/:name/${verb}`,
    access: 'admin',
    tag: 'slots',
    summary,
    schemas: { body },
    async handler(request, reply) {
      const name = slotNameOf(request);
      await requireDone(deps, name, await deps.manage.editor.patch(name, patch(bodyOf(request, body)), ifMatchOf(request)));
      return sendSlot(deps, name, reply.code(202));
    },
  });
  return [
    lifecycle('load', 'Enables the slot, optionally with another model; the controller loads it', LoadBody, ({ model }) => ({
      enabled: true,
      ...(model === undefined ? {} : { model: { default: model } }),
    })),
    lifecycle('unload', 'Disables the slot; the controller drains and stops its workload', NoBody, () => ({ enabled: false })),
    lifecycle('restart', 'Makes the controller replace the slot’s workload; clears a stall', NoBody, () => ({
      restartedAt: new Date(deps.now()).toISOString(),
    })),
  ];
}

/** Lists the known slots in the error if there is no slot of this name. */
async function requireDone(deps: ManageDeps, name: SlotName, result: EditResult): Promise<void> {
  if (result.kind === 'not-found') throw await noSuchSlot(deps.manage.editor, name);
  unwrapEdit(name, result);
}

function patchOf(spec: Readonly<Record<string, unknown>>): SlotPatch {
  const document = toCamelCase(spec);
  return isTable(document) ? document : {};
}

async function refuseExisting(deps: ManageDeps, name: SlotName): Promise<void> {
  if ((await deps.manage.editor.read(name)) === undefined) return;
  throw new ApiError('slot.conflict', `Choose another name, or edit the slot: slot "${name}" exists already`, { param: 'name' });
}

async function sendSlot(deps: ManageDeps, name: SlotName, reply: FastifyReply): Promise<unknown> {
  const stored = await deps.manage.editor.read(name);
  const view = viewSlot(name, stored, deps.board.current());
  if (view === undefined) throw await noSuchSlot(deps.manage.editor, name);
  if (stored !== undefined) reply.header('etag', `"${stored.resourceVersion}"`);
  return view;
}
