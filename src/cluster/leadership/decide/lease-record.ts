/** The Lease that candidates write in turn, as a record and back. Anything may stand in it: whoever may write Leases can have written it. Pure. */
import { isTable } from '../../../schema/key-case.ts';
import { LABEL_PREFIX, LABELS, MANAGER } from '../../../schema/object-labels.ts';
import type { KubeManifest, KubeObject } from '../../client/ports.ts';

export interface LeaseRecord {
  readonly uid: string;
  readonly version: string;
  /** Empty: nobody. */
  readonly holder: string;
  /** Tells two processes of one name apart; empty where another program wrote it. */
  readonly instance: string;
  /** Undefined: it says none that can be. */
  readonly durationMs: number | undefined;
  readonly acquiredAt: string;
  readonly renewedAt: string;
  readonly transitions: number;
  /** What else stands in it, to be kept. */
  readonly object: KubeObject;
}

export interface LeaseClaim {
  readonly name: string;
  readonly holder: string;
  readonly instance: string;
  readonly durationMs: number;
  /** Unix milliseconds, for people: nobody compares them with a clock of their own. */
  readonly nowMs: number;
}

const INSTANCE = `${LABEL_PREFIX}/instance`;
/** What a holder that goes writes as duration; a lease that is held says at least twice as much. */
const RELEASED_MS = 1000;
/** The API counts with 32 bits. */
const MOST_TRANSITIONS = 2 ** 31 - 1;
export const SHORTEST_LEASE_MS = 2 * RELEASED_MS;

export function readLease(object: KubeObject): LeaseRecord {
  const { metadata } = object;
  const spec = isTable(object['spec']) ? object['spec'] : {};
  const seconds = spec['leaseDurationSeconds'];
  const transitions = spec['leaseTransitions'];
  return {
    uid: metadata.uid ?? '',
    version: metadata.resourceVersion ?? '',
    holder: textOf(spec['holderIdentity']),
    instance: textOf(metadata.annotations?.[INSTANCE]),
    durationMs: typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : undefined,
    acquiredAt: textOf(spec['acquireTime']),
    renewedAt: textOf(spec['renewTime']),
    transitions: typeof transitions === 'number' && transitions >= 0 && transitions < MOST_TRANSITIONS ? transitions : 0,
    object,
  };
}

/** The holder gave it back: nobody leads, and the next one need not wait. An emptied holder alone is no such word: the one that leads may not know yet. */
export function isReleased(record: LeaseRecord): boolean {
  return record.holder === '' && record.durationMs === RELEASED_MS;
}

export function isSameRecord(one: LeaseRecord, other: LeaseRecord): boolean {
  return (
    one.uid === other.uid &&
    one.holder === other.holder &&
    one.instance === other.instance &&
    one.durationMs === other.durationMs &&
    one.acquiredAt === other.acquiredAt &&
    one.renewedAt === other.renewedAt &&
    one.transitions === other.transitions
  );
}

/** A lease held by the claimant; `before` undefined: there is none, and it is to be created. */
export function claimLease(before: LeaseRecord | undefined, claim: LeaseClaim): KubeManifest {
  const kept = before !== undefined && before.holder === claim.holder && before.instance === claim.instance;
  // Always another one than before, even when the clock was set back: followers see a renewal by it.
  const renewedAt = microTime(Math.max(claim.nowMs, millisecondsOf(before?.renewedAt) + 1));
  return manifest(before, claim, {
    holderIdentity: claim.holder,
    leaseDurationSeconds: Math.ceil(claim.durationMs / 1000),
    acquireTime: kept && before.acquiredAt !== '' ? before.acquiredAt : renewedAt,
    renewTime: renewedAt,
    leaseTransitions: before === undefined ? 0 : before.transitions + (kept ? 0 : 1),
  });
}

/** The same lease, given back by its holder. */
export function releaseLease(before: LeaseRecord, claim: LeaseClaim): KubeManifest {
  return manifest(before, claim, {
    holderIdentity: '',
    leaseDurationSeconds: RELEASED_MS / 1000,
    acquireTime: before.acquiredAt === '' ? microTime(claim.nowMs) : before.acquiredAt,
    renewTime: microTime(Math.max(claim.nowMs, millisecondsOf(before.renewedAt) + 1)),
    leaseTransitions: before.transitions,
  });
}

/** As the API writes it: with exactly six digits of a second. */
export function microTime(unixMs: number): string {
  return new Date(unixMs).toISOString().replace('Z', '000Z');
}

function manifest(before: LeaseRecord | undefined, claim: LeaseClaim, spec: Readonly<Record<string, unknown>>): KubeManifest {
  const { metadata } = before?.object ?? { metadata: undefined };
  const foreign = before?.object['spec'];
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: claim.name,
      labels: { ...metadata?.labels, [LABELS.managedBy]: MANAGER },
      annotations: { ...metadata?.annotations, [INSTANCE]: claim.instance },
      ...(metadata?.ownerReferences === undefined ? {} : { ownerReferences: metadata.ownerReferences }),
      ...(before === undefined ? {} : { resourceVersion: before.version, uid: before.uid }),
    },
    spec: { ...(isTable(foreign) ? foreign : {}), ...spec },
  };
}

/** Of a time far outside of what clocks say only that it is one. */
function millisecondsOf(text: string | undefined): number {
  const parsed = Date.parse(text ?? '');
  return Number.isNaN(parsed) || parsed > LATEST_BELIEVED_MS ? 0 : parsed;
}

/** The year 2100: a renewal time beyond it was no clock's, and nothing is counted up from it. */
const LATEST_BELIEVED_MS = 4_102_444_800_000;

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
