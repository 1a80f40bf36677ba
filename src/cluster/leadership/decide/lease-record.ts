/** Parses and writes the Lease. Everybody with write access can change it, so it may contain anything. Pure. */
import { z } from 'zod';
import { isTable } from '../../../schema/words/key-case.ts';
import { LABEL_PREFIX, LABELS, MANAGER } from '../../../schema/pod/kube-fields.ts';
import { isSameValue } from '../../../schema/words/same-value.ts';
import type { KubeManifest, KubeObject } from '../../client/ports.ts';

export interface LeaseRecord {
  readonly uid: string;
  readonly holder: string;
  /** Distinguishes two processes with the same name. Empty if another program wrote the Lease. */
  readonly instance: string;
  readonly durationMs: number | undefined;
  readonly acquiredAt: string;
  readonly renewedAt: string;
  readonly transitions: number;
  /** The complete object. Fields that we do not know are kept. */
  readonly object: KubeObject;
}

export interface LeaseWrite {
  readonly name: string;
  readonly holder: string;
  readonly instance: string;
  readonly durationMs: number;
  /** Unix milliseconds, for users. No replica compares them with its own clock. */
  readonly nowMs: number;
}

const INSTANCE = `${LABEL_PREFIX}/instance`;
/** The duration that a holder writes on release. A Lease that is held has at least twice this duration. */
const RELEASED_MS = 1000;
/** The API uses 32 bits. */
const TRANSITIONS_LIMIT = 2 ** 31 - 1;
/** The year 2100. A later renewal time does not come from a clock, so the next one does not have to exceed it. */
const LATEST_RENEWAL_MS = 4_102_444_800_000;
export const SHORTEST_LEASE_MS = 2 * RELEASED_MS;

const Text = z.string().catch('');
const LeaseSpec = z.object({
  holderIdentity: Text,
  leaseDurationSeconds: z.number().positive().optional().catch(undefined),
  acquireTime: Text,
  renewTime: Text,
  leaseTransitions: z.number().min(0).lt(TRANSITIONS_LIMIT).catch(0),
});

export function parseLease(object: KubeObject): LeaseRecord {
  const { metadata } = object;
  const spec = LeaseSpec.parse(isTable(object['spec']) ? object['spec'] : {});
  return {
    uid: metadata.uid ?? '',
    holder: spec.holderIdentity,
    instance: Text.parse(metadata.annotations?.[INSTANCE]),
    durationMs: spec.leaseDurationSeconds === undefined ? undefined : spec.leaseDurationSeconds * 1000,
    acquiredAt: spec.acquireTime,
    renewedAt: spec.renewTime,
    transitions: spec.leaseTransitions,
    object,
  };
}

/** Nobody leads, and the next holder need not wait. An empty holder alone may still lead. */
export const isReleased = ({ holder, durationMs }: LeaseRecord): boolean => holder === '' && durationMs === RELEASED_MS;

export const isHeldBy = (record: LeaseRecord, { holder, instance }: Pick<LeaseRecord, 'holder' | 'instance'>): boolean =>
  record.holder === holder && record.instance === instance;

export const isSameRecord = (one: LeaseRecord, other: LeaseRecord): boolean => isSameValue({ ...one, object: other.object }, other);

export function composeLease(before: LeaseRecord | undefined, write: LeaseWrite): KubeManifest {
  const isRenewal = before !== undefined && isHeldBy(before, write);
  const renewTime = nextRenewTime(before, write);
  return manifest(before, write, {
    holderIdentity: write.holder,
    leaseDurationSeconds: Math.ceil(write.durationMs / 1000),
    acquireTime: isRenewal && before.acquiredAt !== '' ? before.acquiredAt : renewTime,
    renewTime,
    leaseTransitions: before === undefined ? 0 : before.transitions + (isRenewal ? 0 : 1),
  });
}

export function composeRelease(before: LeaseRecord, write: LeaseWrite): KubeManifest {
  return manifest(before, write, {
    holderIdentity: '',
    leaseDurationSeconds: RELEASED_MS / 1000,
    acquireTime: before.acquiredAt === '' ? microTime(write.nowMs) : before.acquiredAt,
    renewTime: nextRenewTime(before, write),
    leaseTransitions: before.transitions,
  });
}

/** Formats a time as `metav1.MicroTime`, with exactly six decimal places. */
export const microTime = (unixMs: number): string => new Date(unixMs).toISOString().replace('Z', '000Z');

/** Unix milliseconds by the clock of the writer; 0 if missing or implausible. */
export function renewTimeMs({ renewedAt }: LeaseRecord): number {
  const parsed = Date.parse(renewedAt);
  return Number.isNaN(parsed) || parsed > LATEST_RENEWAL_MS ? 0 : parsed;
}

/** Always differs from the previous time, even if the clock was set back: followers detect a renewal by it. */
function nextRenewTime(before: LeaseRecord | undefined, { nowMs }: LeaseWrite): string {
  return microTime(Math.max(nowMs, before === undefined ? 0 : renewTimeMs(before) + 1));
}

function manifest(before: LeaseRecord | undefined, write: LeaseWrite, spec: Readonly<Record<string, unknown>>): KubeManifest {
  const { metadata } = before?.object ?? { metadata: undefined };
  const otherFields = before?.object['spec'];
  return {
    metadata: {
      name: write.name,
      labels: { ...metadata?.labels, [LABELS.managedBy]: MANAGER },
      annotations: { ...metadata?.annotations, [INSTANCE]: write.instance },
      ...(metadata?.ownerReferences === undefined ? {} : { ownerReferences: metadata.ownerReferences }),
      ...(before === undefined ? {} : { resourceVersion: metadata?.resourceVersion ?? '', uid: before.uid }),
    },
    spec: { ...(isTable(otherFields) ? otherFields : {}), ...spec },
  };
}
