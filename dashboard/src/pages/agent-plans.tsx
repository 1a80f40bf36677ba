/** Plans of agents, above the list of changes, with all that they would change. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { formatTime } from '../decide/format.ts';
import { DataTable } from '../parts/data-table.tsx';
import { messageOf } from '../io/client.ts';
import { useLoaded } from '../parts/use-loaded.tsx';
import { A } from '../texts-activity.ts';
import type { AgentPlans } from '../types.ts';

type AgentPlan = AgentPlans['plans'][number];

const PLANS_SECONDS = 2;

export function AgentPlanList(): JSX.Element | null {
  const { client, now } = useApp();
  const [reviews, setReviews] = useState(0);
  const round = Math.floor(now.value / 1000 / PLANS_SECONDS);
  const loaded = useLoaded((signal) => client.fetchJson<AgentPlans>('/api/mcp/plans', { signal }), [round, reviews]);
  // The list of changes below says why nothing can be read.
  if (loaded.kind !== 'done' || loaded.value.plans.length === 0) return null;
  return (
    <section class="panel" aria-label={A.agentPlans}>
      <h2>{A.agentPlans}</h2>
      {loaded.value.plans.map((plan) => (
        <PlanCard key={plan.id} plan={plan} onReviewed={() => setReviews(reviews + 1)} />
      ))}
    </section>
  );
}

function PlanCard({ plan, onReviewed }: { readonly plan: AgentPlan; readonly onReviewed: () => void }): JSX.Element {
  const { client, now } = useApp();
  const [failure, setFailure] = useState('');
  const review = (verb: 'approve' | 'reject'): void =>
    void client
      .fetchJson(`/api/mcp/plans/${plan.id}/${verb}`, { method: 'POST' })
      .then(onReviewed, (error: unknown) => setFailure(messageOf(error)));
  const keys = plan.slots.flatMap(({ name, keys: changed }) => changed.map((each) => ({ name, ...each })));
  return (
    <article>
      <p>
        <code>{plan.id}</code> {A.agentPlan(plan.by, plan.caller)}: {plan.waits ? A.waits : A.mayApply}{' '}
        {A.until(formatTime(plan.expires_at, now.peek()))}
      </p>
      <DataTable label={plan.id} titles={[A.slot, A.key, A.before, A.after]}>
        {keys.map(({ name, key, before, after }) => (
          <tr key={`${name} ${key}`}>
            <td>{name}</td>
            <td>{key}</td>
            {[before, after].map((value, index) => (
              <td key={index}>{value === undefined ? A.notSet : <code>{visible(JSON.stringify(value))}</code>}</td>
            ))}
          </tr>
        ))}
      </DataTable>
      <pre>{visible(plan.text)}</pre>
      {failure !== '' && <p role="alert">{failure}</p>}
      <footer>
        <button type="button" onClick={() => review('reject')}>
          {A.reject}
        </button>
        {plan.waits && (
          <button type="button" class="main" onClick={() => review('approve')}>
            {A.approve}
          </button>
        )}
      </footer>
    </article>
  );
}

/** Characters that change how others are shown are written out, so that no text can mislead. */
const visible = (text: string): string => text.replaceAll(/\p{Cf}/gu, (found) => `\\u{${found.codePointAt(0)?.toString(16) ?? ''}}`);
