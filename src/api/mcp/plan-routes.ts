/** Plans of agents, which a person may have to approve (`SVC_MCP_APPROVE`). */
import { z } from 'zod';
import { AgentPlan, AgentPlans } from '../../schema/status/resource-answers.ts';
import { ApiError, json } from '../server/answer.ts';
import { defineRoute, NoInput, type DocumentedRoute } from '../server/define-route.ts';
import { expiryOf, type ChangePlan, type ChangePlans } from './change-plans.ts';

const PlanParams = z.object({ id: z.string().regex(/^[0-9a-f]{8}$/, 'Use the 8 hexadecimal digits of the plan') });

/** `plans`: undefined where agents cannot use the service. */
export function createPlanRoutes(plans: ChangePlans | undefined): readonly DocumentedRoute[] {
  const view = ({ id, by, slots, text, since, state }: ChangePlan): z.output<typeof AgentPlan> => ({
    id,
    by: by.identity,
    caller: by.key,
    waits: state === 'waiting',
    expires_at: expiryOf(since),
    slots: [...slots],
    text,
  });
  const review = (verb: 'approve' | 'reject', summary: string): DocumentedRoute =>
    defineRoute('POST', `/api/mcp/plans/:id/${verb}`, 'admin', {
      tag: 'changes',
      summary,
      input: z.object({ params: PlanParams }),
      answers: { 200: json('The plan', AgentPlan) },
      errors: ['plan.refused'],
      handler({ params: { id } }, { caller }) {
        const reviewed = plans?.[verb](id, caller) ?? { ok: false, message: 'Agents make no plans here: "SVC_MCP" is "off"' };
        if (!reviewed.ok) throw new ApiError('plan.refused', reviewed.message, { param: 'id' });
        return { status: 200, body: view(reviewed.plan) };
      },
    });
  return [
    defineRoute('GET', '/api/mcp/plans', 'admin', {
      tag: 'changes',
      summary: 'Plans that agents have made, and that were not applied',
      input: NoInput,
      answers: { 200: json('Plans, the oldest first', AgentPlans) },
      handler: () => ({ status: 200, body: { plans: (plans?.list() ?? []).map(view) } }),
    }),
    review('approve', 'Lets the agent apply its plan within five minutes'),
    review('reject', 'Makes the token of a plan useless'),
  ];
}
