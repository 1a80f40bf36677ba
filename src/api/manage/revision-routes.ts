/** The history of a slot, and undo. An undo is an edit of the slot's document like any other. */
import { z } from 'zod';
import { planUndo } from '../../schema/slot/decide/revisions.ts';
import type { Revision } from '../../schema/slot/revision-store.ts';
import type { StoredSlot } from '../../schema/slot/slot-editor.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import { RevisionList, Undone } from '../../schema/status/resource-answers.ts';
import { toSnakeCase, isTable } from '../../schema/words/key-case.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { ApiError, json } from '../server/answer.ts';
import { defineRoute, type DocumentedRoute } from '../server/define-route.ts';
import { changesText, listChanges } from './decide/unsafe-edits.ts';
import { isoTime } from './decide/slot-view.ts';
import { ifMatchOf, IfMatch, noSuchSlot, requireResumed, SlotParams, unwrapEdit } from './edit-outcome.ts';
import type { ManageDeps } from './manage-deps.ts';

const UndoBody = z.strictObject({
  to_revision: z.int().min(1).optional().describe('Default: the last earlier one that served with another spec'),
  dry_run: z.boolean().default(false).describe('Say what the undo would change, and write nothing'),
});

export function createRevisionRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  const { editor } = deps.manage;
  const findSlot = async (name: SlotName): Promise<StoredSlot> => {
    const stored = await editor.read(name);
    if (stored === undefined) throw await noSuchSlot(deps, name);
    return stored;
  };
  return [
    defineRoute('GET', '/api/slots/:name/revisions', 'read', {
      tag: 'slots',
      summary: 'What was in force of the slot, and what became of it',
      input: z.object({ params: SlotParams }),
      answers: { 200: json('The revisions that are kept, the newest first', RevisionList) },
      errors: ['slot.not_found', 'server.starting'],
      async handler({ params: { name } }) {
        await findSlot(name);
        const { revisions } = deps.manage;
        const kept = (await revisions?.list(name)) ?? [];
        return { status: 200, body: { name, kept: revisions !== undefined, revisions: kept.map(viewRevision).toReversed() } };
      },
    }),
    defineRoute('POST', '/api/slots/:name/undo', 'admin', {
      tag: 'slots',
      summary: 'Writes the spec of an earlier revision into the slot’s document; comments in it stay',
      input: z.object({ params: SlotParams, headers: IfMatch, body: UndoBody }),
      answers: { 200: json('What was done', Undone) },
      errors: [
        'slot.not_found',
        'slot.conflict',
        'slot.invalid',
        'rollout.paused',
        'rollout.managed',
        'source.managed',
        'revision.not_found',
        'server.starting',
      ],
      async handler({ params: { name }, headers, body: { to_revision: to, dry_run: dryRun } }) {
        const stored = await findSlot(name);
        requireResumed(stored);
        const before = stored.document;
        if (before === undefined)
          throw new ApiError('slot.invalid', `The text of slot "${name}" cannot be read: correct its syntax in the file first`);
        const kept = (await deps.manage.revisions?.list(name)) ?? [];
        await requireOwn(deps, name, kept.at(-1));
        const undo = planUndo(kept, before, to);
        if (undo.kind === 'refused') throw new ApiError('revision.not_found', undo.message, { param: 'to_revision' });
        const { number } = undo.revision;
        const done = { name, dry_run: dryRun, revision: number };
        if (undo.kind === 'same') return { status: 200, body: { ...done, result: 'unchanged' as const, message: 'changed nothing' } };
        const ifMatch = ifMatchOf(headers).ifMatch ?? stored.resourceVersion;
        const written = await editor.put(name, undo.document, { ifMatch, dryRun, undoOf: number });
        if (written.kind === 'invalid') {
          const why = written.problems.map((problem) => formatProblem(problem)).join('; ');
          const how = `"svcctl rollout history slot/${name} --revision ${number}" prints its spec, to be written by hand`;
          throw new ApiError('slot.invalid', `Slot "${name}" cannot return to revision ${number}: ${why}. ${how}`);
        }
        unwrapEdit(name, written);
        return { status: 200, body: { ...done, result: 'undone' as const, message: changesText(listChanges(before, undo.document)) } };
      },
    }),
  ];
}

/** A controller of GitOps would write the text of its repository again. */
async function requireOwn({ manage }: ManageDeps, name: SlotName, present: Revision | undefined): Promise<void> {
  const manager = await manage.revisions?.managerOf?.(name);
  if (manager === undefined) return;
  const commit = manage.revisions?.commitOf?.(name);
  const before = present === undefined ? '' : ` --before=${new Date(present.at).toISOString()}`;
  const how =
    commit === undefined
      ? `revert the commit in its repository: "git log -3${before}" lists it, "git revert COMMIT" and a push undo it`
      : `revert the commit in its repository: "git revert ${commit}" and a push undo it`;
  throw new ApiError('rollout.managed', `"${manager}" declares slot "${name}" and would write its text again; ${how}`);
}

function viewRevision(revision: Revision, index: number, all: readonly Revision[]) {
  const { number, at, who, undoOf, outcome, document } = revision;
  const before = all[index - 1];
  const spec = toSnakeCase(document);
  return {
    revision: number,
    at: isoTime(at),
    who,
    undo_of: undoOf ?? null,
    outcome,
    present: index === all.length - 1,
    message: before === undefined ? null : changesText(listChanges(before.document, document)),
    spec: isTable(spec) ? spec : {},
  };
}
