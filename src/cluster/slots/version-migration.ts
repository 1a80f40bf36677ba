/**
 * Stores every SlotSpec in the version of an upgraded definition, and then records in the definition that none is
 * stored in an older one, so that a later definition can drop it. Only the leader does so.
 */
import { pause } from '../../platform/clock.ts';
import type { SourceLog } from '../../platform/log.ts';
import type { Clock } from '../../reconciler/ports.ts';
import { ok, type Failure, type Result } from '../../schema/words/failure.ts';
import { DEFINITIONS, resourceName, SLOT_SPECS } from '../client/decide/resource-path.ts';
import type { KubeApi, Leadership } from '../client/ports.ts';
import { decideMigration, SETTLE_MS, type Migration } from './decide/decide-migration.ts';

interface VersionMigrationDeps {
  readonly api: Pick<KubeApi, 'get' | 'list' | 'mergePatch'>;
  readonly leadership: Pick<Leadership, 'leads' | 'term'>;
  readonly clock: Clock;
  readonly log: Pick<SourceLog, 'info' | 'warn'>;
}

/** A definition is edited rarely, and has some 200 KB. */
const CHECK_EVERY_MS = 600_000;
/** Twenty writes per second are few for an API server. */
const WRITE_GAP_MS = 50;
const RETRY_MS = 1000;
const WARN_AFTER_FAILURES = 5;
const DEFINITION = { name: resourceName(SLOT_SPECS), subresource: 'status' } as const;

const explain = (message: string): string =>
  `SlotSpecs are not stored in a newer version: ${message}, or follow "Versions of SlotSpec" in docs/cluster/install.md`;

export function createVersionMigration({ api, leadership, clock, log }: VersionMigrationDeps) {
  let migration: Migration | undefined;
  let failures = 0;
  let warned: string | undefined;

  /** Returns in how many milliseconds to look again. */
  async function look(term: AbortSignal): Promise<Result<number>> {
    const found = await api.get(DEFINITIONS, DEFINITION.name, term);
    // An API server of its own can serve slots without a definition.
    if (!found.ok && found.failure.reason === 'NotFound') return ok(CHECK_EVERY_MS);
    if (!found.ok) return found.failure.reason === 'Forbidden' ? unwatched(found.failure) : found;
    migration = decideMigration(found.value, migration, clock.now());
    if (migration === undefined) return ok(CHECK_EVERY_MS);
    if (migration.kind === 'wait') return ok(SETTLE_MS);
    const { storage, written } = migration;
    // Another version may lack fields that are stored. A write to the status leaves the spec alone.
    const type = { ...SLOT_SPECS, version: storage };
    const listed = await api.list({ ...type, namespaced: false }, { transform: ({ metadata }) => ({ metadata }) }, term);
    if (!listed.ok) return listed;
    for (const { metadata } of listed.value.items) {
      const { name, namespace = '', uid = '', resourceVersion } = metadata;
      if (written.has(uid)) continue;
      const result = await api.mergePatch(type, { name, namespace, subresource: 'status' }, { metadata: { resourceVersion } }, term);
      // After a conflict, another client has stored the object anew.
      if (!result.ok && result.failure.reason !== 'Conflict') return result;
      written.add(uid);
      await pause(clock, WRITE_GAP_MS, term);
    }
    // The resource version is a precondition: no version became the stored one since the definition was read.
    const { resourceVersion } = found.value.metadata;
    const patch = { metadata: { resourceVersion }, status: { storedVersions: [storage] } };
    const recorded = await api.mergePatch(DEFINITIONS, DEFINITION, patch, term);
    if (!recorded.ok) return recorded;
    log.info({}, `Every SlotSpec is stored as "${storage}", the only stored version that the definition lists now`);
    return ok(CHECK_EVERY_MS);
  }

  /** The chart grants the rights only where they are asked for. */
  function unwatched({ message }: Failure): Result<number> {
    if (warned !== message) log.info({}, explain(message));
    warned = message;
    return ok(CHECK_EVERY_MS);
  }

  function delayAfter({ kind, message }: Failure): number {
    failures += 1;
    if (warned !== message && (kind === 'stalled' || failures === WARN_AFTER_FAILURES)) {
      log.warn({}, explain(message));
      warned = message;
    }
    return kind === 'stalled' ? CHECK_EVERY_MS : Math.min(RETRY_MS * 2 ** (failures - 1), CHECK_EVERY_MS);
  }

  return {
    /** Resolves when the signal has aborted. */
    async start(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        const next = leadership.leads() ? await look(AbortSignal.any([leadership.term(), signal])) : ok(RETRY_MS);
        if (next.ok) failures = 0;
        await pause(clock, next.ok ? next.value : delayAfter(next.failure), signal);
      }
    },
  };
}
