/** Changes to several slots at once. All documents are validated before the first is written. */
import { z } from 'zod';
import { isTable, toCamelCase } from '../../schema/words/key-case.ts';
import { SlotName } from '../../schema/words/names.ts';
import type { SlotEditor, StoredSlot } from '../../schema/slot/slot-editor.ts';
import { parseSlot, SlotDocument } from '../../schema/slot/slot-spec.ts';
import { ApiError, json } from '../server/answer.ts';
import { defineRoute, SLOTS_BODY_BYTES, type DocumentedRoute } from '../server/define-route.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { Applied, Plan } from '../../schema/status/answers.ts';
import { slotInvalid, unwrapEdit } from './edit-outcome.ts';
import type { ManageDeps } from './manage-deps.ts';

const Slots = z
  .array(
    z.strictObject({
      name: SlotName,
      spec: z.record(z.string(), z.unknown()).describe('The slot’s keys, as in its TOML file'),
      resource_version: z.string().optional().describe('Refuse the edit if the slot has changed since'),
    }),
  )
  .max(1000);
const PlanBody = z.strictObject({
  slots: Slots.default([]).describe('Documents that replace the current ones. Default: none, which plans for the current ones'),
  prune: z.boolean().default(false).describe('Treat slots that are not listed as removed'),
  load: z.array(SlotName).default([]).describe('Plan as if requests waited for these slots, as after "load"'),
});
const ApplyBody = z.strictObject({
  slots: Slots,
  prune: z.boolean().default(false).describe('Remove slots that are not listed'),
  dry_run: z.boolean().default(false).describe('Validate everything and write nothing'),
});

export function createChangeRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  const { editor, preview } = deps.manage;
  return [
    defineRoute('POST', '/api/plan', 'admin', {
      tag: 'changes',
      bodyLimit: SLOTS_BODY_BYTES,
      summary: 'Shows what these documents would change, without executing anything',
      input: z.object({ body: PlanBody }),
      answers: { 200: json('The changes, as text and as a list', Plan) },
      errors: ['slot.invalid'],
      async handler({ body }) {
        const { wanted, pruned } = await resolveChangeSet(editor, body);
        const overlay = new Map<SlotName, SlotDocument | undefined>(wanted.map(({ name, document }) => [name, document]));
        for (const { name } of pruned) overlay.set(name, undefined);
        return { status: 200, body: await preview(overlay, new Set(body.load)) };
      },
    }),
    defineRoute('POST', '/api/apply', 'admin', {
      tag: 'changes',
      bodyLimit: SLOTS_BODY_BYTES,
      summary: 'Writes these documents after all of them have been validated',
      input: z.object({ body: ApplyBody }),
      answers: { 200: json('The result for each slot', Applied) },
      errors: ['slot.not_found', 'slot.conflict', 'slot.invalid', 'source.managed'],
      async handler({ body }) {
        const changes = await resolveChangeSet(editor, body);
        const checked = await applyChangeSet(editor, changes, true);
        const slots = body.dry_run ? checked : await applyChangeSet(editor, changes, false);
        return { status: 200, body: { dry_run: body.dry_run, slots } };
      },
    }),
  ];
}

async function resolveChangeSet(editor: SlotEditor, body: Pick<z.output<typeof PlanBody>, 'slots' | 'prune'>) {
  if (body.prune && body.slots.length === 0)
    throw new ApiError('request.invalid', 'Pruning with an empty list would remove every slot: list at least one in "slots"', {
      param: 'slots',
    });
  const stored = new Map((await editor.list()).map((slot) => [slot.name, slot]));
  const names = new Set<SlotName>();
  const wanted = body.slots.map(({ name, spec, resource_version: ifMatch }, index) => {
    if (names.has(name)) throw new ApiError('request.invalid', `Slot "${name}" is listed twice`, { param: `slots.${index}.name` });
    names.add(name);
    return { name, document: validate(name, spec), ifMatch, stored: stored.get(name) };
  });
  return { wanted, pruned: body.prune ? [...stored.values()].filter(({ name }) => !names.has(name)) : [] };
}

type ChangeSet = Awaited<ReturnType<typeof resolveChangeSet>>;

function validate(name: SlotName, spec: unknown): SlotDocument {
  const document = toCamelCase(spec);
  const parsed = parseSlot(name, document);
  // Narrows the type of a document that `parseSlot` has accepted.
  const isSlotDocument = (accepted: unknown): accepted is SlotDocument => isTable(accepted);
  if (parsed.ok && isSlotDocument(document)) return document;
  throw slotInvalid(name, parsed.ok ? [] : parsed.problems);
}

async function applyChangeSet(editor: SlotEditor, { wanted, pruned }: ChangeSet, dryRun: boolean) {
  const results: z.output<typeof Applied>['slots'] = [];
  for (const { name, document, ifMatch, stored } of wanted) {
    if (ifMatch !== undefined && stored === undefined) unwrapEdit(name, { kind: 'not-found' });
    const same = stored !== undefined && isSameDocument(stored, document);
    if (same && (ifMatch === undefined || ifMatch === stored.resourceVersion)) {
      results.push({ name, result: 'unchanged' });
      continue;
    }
    const put = await editor.put(name, document, { dryRun, ...(ifMatch === undefined ? {} : { ifMatch }) });
    const result = put.kind === 'failed' ? { ...put, message: `${put.message}${writtenBefore(results)}` } : put;
    results.push({ name, result: unwrapEdit(name, result).created ? 'created' : 'updated' });
  }
  for (const { name } of pruned) {
    const result = await editor.remove(name, { dryRun });
    if (result.kind !== 'not-found') unwrapEdit(name, result);
    results.push({ name, result: 'deleted' });
  }
  return results;
}

function isSameDocument(stored: StoredSlot, document: SlotDocument): boolean {
  if (stored.defaultsFilled !== true) return isSameValue(stored.document, document);
  const [before, after] = [SlotDocument.safeParse(stored.document), SlotDocument.safeParse(document)];
  return before.success && after.success && isSameValue(before.data, after.data);
}

function writtenBefore(results: readonly { readonly name: SlotName; readonly result: string }[]): string {
  const names = results.filter(({ result }) => result !== 'unchanged').map(({ name }) => `"${name}"`);
  return names.length === 0 ? '' : `; already written: ${names.join(', ')}`;
}
