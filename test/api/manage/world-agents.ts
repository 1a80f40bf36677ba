/** What agents need in the world of the management API: an audit trail, plans, and clocks that tests set. */
import { createAuditTrail } from '../../../src/api/manage/audit-trail.ts';
import { createChangePlans, type ChangePlans } from '../../../src/api/mcp/change-plans.ts';
import { createMcpRoutes } from '../../../src/api/mcp/mcp-route.ts';
import type { ManageDeps } from '../../../src/api/manage/manage-deps.ts';
import type { DocumentedRoute, Route } from '../../../src/api/server/define-route.ts';
import type { Settings } from '../../../src/schema/settings/settings.ts';

export interface WorldAgents {
  /** Undefined without `SVC_MCP`. */
  readonly plans: ChangePlans | undefined;
  /** What the clocks of plans show in addition, in milliseconds. */
  readonly clock: { ms: number; wallMs: number };
  /** Lines of the audit log. */
  readonly audited: string[];
  readonly audit: ReturnType<typeof createAuditTrail>;
  /** The route of agents, which is not documented with the API. */
  readonly routes: Route[];
  open(routes: readonly DocumentedRoute[], manage: ManageDeps['manage']): void;
}

export function openAgents({ SVC_MCP: use, SVC_MCP_APPROVE: approval }: Settings): WorldAgents {
  const clock = { ms: 0, wallMs: 0 };
  const audited: string[] = [];
  const log = { info: (_fields: unknown, message: string) => void audited.push(message) };
  const audit = createAuditTrail({ log, keep: () => undefined, wallNow: () => Date.now(), note: () => undefined });
  const now = () => ({ ms: performance.now() + clock.ms, wallMs: Date.now() + clock.wallMs });
  const plans = use === 'off' ? undefined : audit.plans(createChangePlans({ now, needsApproval: approval === 'human' }));
  const routes: Route[] = [];
  return {
    plans,
    clock,
    audited,
    audit,
    routes,
    open(api, manage) {
      if (plans !== undefined)
        routes.push(...createMcpRoutes({ routes: api, manage, plans, actAs: audit.actAs, onFault: () => undefined }));
    },
  };
}
