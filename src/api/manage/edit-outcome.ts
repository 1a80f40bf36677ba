/** Converts the results of edits to answers, or to the errors that end a request. */
import { z } from 'zod';
import { ApiError } from '../server/answer.ts';
import { SlotName } from '../../schema/words/names.ts';
import { valueAt } from '../../schema/pod/kube-fields.ts';
import { mergePatch, type EditResult, type SlotEditor, type StoredSlot } from '../../schema/slot/slot-editor.ts';
import { pathToSnakeCase, isTable } from '../../schema/words/key-case.ts';
import { formatProblem, type SpecProblem } from '../../schema/slot/spec-problem.ts';
import type { ManageDeps } from './manage-deps.ts';
import { findUnsafeEdits, type Edit, type SafeFlags } from './decide/unsafe-edits.ts';

type Done = Extract<EditResult, { kind: 'done' }>;

export function unwrapEdit(name: SlotName, result: EditResult): Done {
  switch (result.kind) {
    case 'done':
      return result;
    case 'not-found':
      throw new ApiError('slot.not_found', `There is no slot "${name}"`, { param: 'name' });
    case 'conflict':
      throw new ApiError(
        'slot.conflict',
        `Slot "${name}" has changed and now has resource version "${result.resourceVersion}": read it again and repeat the edit`,
        { param: 'resource_version' },
      );
    case 'invalid':
      throw slotInvalid(name, result.problems);
    case 'managed':
      throw new ApiError('source.managed', result.message);
    case 'failed':
      throw new ApiError('server.internal', `Could not write slot "${name}": ${result.message}`);
    default:
      return result satisfies never;
  }
}

export function slotInvalid(name: SlotName, problems: readonly SpecProblem[]): ApiError {
  const [first] = problems;
  const param = first === undefined ? '' : pathToSnakeCase(first.path).join('.');
  const text = problems.map((problem) => formatProblem(problem)).join('; ');
  return new ApiError('slot.invalid', `Slot "${name}" is invalid: ${text}`, param === '' ? {} : { param });
}

/** Before the first pass, the slots are not known, so none is reported as missing. */
export async function noSuchSlot({ board, manage: { editor } }: Pick<ManageDeps, 'board' | 'manage'>, name: SlotName): Promise<ApiError> {
  if (board.current().version === 0) {
    const message = 'The service has just started and has not read its slots yet: try again in a moment';
    return new ApiError('server.starting', message, { headers: { 'retry-after': '1' } });
  }
  const names = (await editor.list()).map((slot) => `"${slot.name}"`).join(', ');
  const hint = names === '' ? 'no slot is configured' : `known slots: ${names}`;
  return new ApiError('slot.not_found', `There is no slot "${name}"; ${hint}`, { param: 'name' });
}

/** As in `kubectl`, what replaces a workload is refused while rollouts are paused: it would take effect much later. */
export function requireResumed({ name, document }: StoredSlot): void {
  if (valueAt(document, 'rollout', 'paused') !== true) return;
  const message = `Rollouts of slot "${name}" are paused: resume them first with "svcctl rollout resume slot/${name}"`;
  throw new ApiError('rollout.paused', message, { param: 'rollout.paused' });
}

export const SlotParams = z.object({ name: SlotName });

/** The version that an edit is based on. */
export const IfMatch = z
  .object({
    'if-match': z
      .string()
      .optional()
      .describe('Refuse the edit if the slot does not have this resource version; "*": if it does not exist'),
  })
  .describe('Headers');

/** Returns the version that an edit is based on, from `If-Match` or else the body's `resource_version`. */
export function ifMatchOf(headers: z.output<typeof IfMatch>, inBody?: string | null): { readonly ifMatch?: string } {
  const header = headers['if-match'];
  if (header === undefined) return inBody === undefined || inBody === null ? {} : { ifMatch: inBody };
  const match = /^(?:W\/)?"([^"]*)"$|^(\*|[^\s",]+)$/.exec(header.trim());
  const ifMatch = match?.[1] ?? match?.[2];
  if (ifMatch === undefined)
    throw new ApiError('request.invalid', '"If-Match" is invalid: send one resource version', { param: 'If-Match' });
  return { ifMatch };
}

/** Refuses unsafe edits through the API (`decide/unsafe-edits.ts`). It wraps the editor, so no route can forget it. */
export function createGuardedEditor(editor: SlotEditor, safeFlags: SafeFlags): SlotEditor {
  const refuse = (edit: Edit): EditResult | undefined => {
    const problems = findUnsafeEdits(edit, safeFlags);
    return problems.length === 0 ? undefined : { kind: 'invalid', problems };
  };

  return {
    ...editor,
    async put(name, document, options) {
      const before = (await editor.read(name))?.document;
      const refused = isTable(document) ? refuse({ name, before, after: document }) : undefined;
      return refused ?? editor.put(name, document, options);
    },
    async patch(name, patch, options) {
      const before = (await editor.read(name))?.document;
      const after = mergePatch(before ?? {}, patch);
      const refused = isTable(after) ? refuse({ name, before, after }) : undefined;
      return refused ?? editor.patch(name, patch, options);
    },
  };
}
