/** The tools with which agents change slots: first a plan, then its token. Both use the routes for plans and edits. */
import { z } from 'zod';
import { toCamelCase, toSnakeCase } from '../../schema/words/key-case.ts';
import { SlotName } from '../../schema/words/names.ts';
import { mergePatch, type SlotEditor } from '../../schema/slot/slot-editor.ts';
import { Applied, Plan } from '../../schema/status/answers.ts';
import { AgentPlan } from '../../schema/status/resource-answers.ts';
import { listChanges } from '../manage/decide/unsafe-edits.ts';
import { ApiError } from '../server/answer.ts';
import type { RouteContext } from '../server/define-route.ts';
import { expiryOf, type ChangePlans, type Draft } from './change-plans.ts';
import type { CallRoute, Tool } from './mcp-tools.ts';

const PlanInput = z.strictObject({
  edits: z
    .array(
      z.strictObject({
        name: SlotName.describe('A slot; a new name creates one'),
        set: z
          .record(z.string(), z.unknown())
          .describe('Merged into the document of the slot, as "get_slot" shows it in "spec" (RFC 7396: null removes a key)'),
      }),
    )
    .min(1)
    .max(50),
});

const Planned = z.object({
  id: z.string().nullable(),
  token: z.string().nullable().describe('For "apply_plan". Null: the plan cannot be applied; see "message"'),
  hash: z.string().nullable().describe('SHA-256 of the plan, which the token belongs to'),
  expires_at: z.iso.datetime().nullable(),
  message: z.string().describe('What to do next'),
  slots: AgentPlan.shape.slots,
  ...Plan.shape,
});

const ApplyInput = z.strictObject({ token: z.string().max(200).describe('As "plan_change" returned it') });

interface PlanToolsDeps {
  readonly editor: SlotEditor;
  readonly plans: ChangePlans;
  readonly call: CallRoute;
}

export function createPlanTools({ editor, plans, call }: PlanToolsDeps): readonly Tool[] {
  async function apply(edits: Draft['edits'], context: RouteContext, dryRun = false) {
    return Applied.parse(await call('POST /api/apply', { body: { slots: edits, dry_run: dryRun } }, context));
  }

  async function plan({ edits }: z.output<typeof PlanInput>, context: RouteContext): Promise<z.output<typeof Planned>> {
    const stored = new Map((await editor.list()).map((slot) => [slot.name, slot]));
    const wanted = edits.map(({ name, set }) => {
      const before = stored.get(name);
      if (before !== undefined && before.document === undefined)
        throw new ApiError('slot.invalid', `The text of slot "${name}" cannot be read: let a person correct it`, { param: name });
      const after = mergePatch(before?.document ?? {}, toCamelCase(set));
      const edit = { name, spec: toSnakeCase(after), ...(before && { resource_version: before.resourceVersion }) };
      return { edit, keys: [...listChanges(before?.document, after, 'all')] };
    });
    const all = wanted.map(({ edit }) => edit);
    // Refuses what a person could not apply through the API either.
    const checked = await apply(all, context, true);
    const effects = Plan.parse(await call('POST /api/plan', { body: { slots: all } }, context));
    const slots = checked.slots.map((each, index) => ({ ...each, keys: wanted[index]?.keys ?? [] }));
    const facts = { slots, ...effects };
    const refused = whyNot(slots, effects);
    if (refused !== undefined || context.caller === undefined)
      return { id: null, token: null, hash: null, expires_at: null, message: refused ?? '', ...facts };
    const names = new Set([...all.map(({ name }) => name), ...effects.changes.map(({ slot }) => slot)]);
    const versions = new Map([...names].map((name) => [name, stored.get(name)?.resourceVersion]));
    const made = plans.add({ edits: all, slots, versions, text: effects.text }, context.caller);
    const { id, hash } = made.plan;
    const first = plans.needsApproval
      ? `Ask your user to approve it, in the dashboard or with "svcctl mcp approve ${id}". Then call`
      : 'Call';
    const message = `${first} "apply_plan" with the token, once and within five minutes.`;
    return { id, token: made.token, hash, expires_at: expiryOf(made.plan.since), message, ...facts };
  }

  return [
    {
      name: 'plan_change',
      title: 'Plan a change of slots',
      description: 'Checks edits of slots and shows what they would do. Changes nothing. Returns a token for "apply_plan"',
      access: 'admin',
      input: PlanInput,
      output: Planned,
      run: async (args, context) => await plan(PlanInput.parse(args), context),
    },
    {
      name: 'apply_plan',
      title: 'Apply a plan',
      description: 'Writes the slots of a plan, exactly as "plan_change" has shown it',
      changes: true,
      access: 'admin',
      input: ApplyInput,
      output: Applied,
      async run(args, context) {
        const { token } = ApplyInput.parse(args);
        const versions = new Map((await editor.list()).map(({ name, resourceVersion }) => [name, resourceVersion]));
        const used = plans.use(token, context.caller, versions);
        if (!used.ok) throw new ApiError('plan.refused', used.message, { param: 'token' });
        return await apply(used.plan.edits, context);
      },
    },
  ];
}

/** Undefined: the plan may get a token. */
function whyNot(slots: Draft['slots'], { failing }: z.output<typeof Plan>): string | undefined {
  if (slots.every(({ result }) => result === 'unchanged')) return 'The edits change nothing.';
  if (failing.length === 0) return undefined;
  return `It would leave ${failing.map(({ slot }) => `"${slot}"`).join(', ')} unable to load: make another plan.`;
}
