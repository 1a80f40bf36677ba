/** Opens what the service remembers of requests, changes and callers. */
import path from 'node:path';
import { createAuditTrail, type AuditTrail } from '../api/manage/audit-trail.ts';
import { createRequestRecord, reportTo } from '../api/manage/request-record.ts';
import { createChangePlans } from '../api/mcp/change-plans.ts';
import { createChangeRecord } from '../files/change-files.ts';
import type { Settings } from '../schema/settings/settings.ts';
import type { Controller } from './create-controller.ts';
import type { ServiceOptions, World } from './world.ts';

interface RecordParts {
  readonly world: World;
  readonly controller: Controller;
}

/** Changes are in memory in a cluster, where no directory outlives a replica. */
export function openRecords(options: ServiceOptions, parts: RecordParts) {
  const { settings, log } = options;
  const { loop, clock, captures: files, usage } = parts.controller;
  const isCluster = parts.world.runtime.traits.network === 'pods';
  const changes = createChangeRecord(isCluster ? undefined : path.join(settings.SVC_STATE_DIR, 'audit', 'changes.jsonl'), log);
  const audit = createAuditTrail({
    log,
    note: loop.note,
    keep: changes.add,
    wallNow: clock.wallNow,
    attribute: parts.world.revisions?.attribute,
  });
  const requests = createRequestRecord(clock.wallNow);
  const plans = openPlans(settings, clock, audit);
  const captures = files && audit.captures(files);
  const listeners = [requests, usage, parts.controller.traces].flatMap((each) => each?.note ?? []);
  return { audit, changes, captures, requests, usage, plans, note: reportTo(...listeners) };
}

/** Undefined: agents cannot use the service. */
function openPlans(settings: Settings, { now, wallNow }: Pick<Controller['clock'], 'now' | 'wallNow'>, audit: AuditTrail) {
  if (settings.SVC_MCP === 'off') return undefined;
  const needsApproval = settings.SVC_MCP_APPROVE === 'human';
  return audit.plans(createChangePlans({ now: () => ({ ms: now(), wallMs: wallNow() }), needsApproval }));
}
