/** Decides how SlotSpecs leave the version in which an older definition stored them. Pure. */
import { tablesAt, valueAt } from '../../../schema/pod/kube-fields.ts';
import type { KubeObject } from '../../client/ports.ts';

/** What the leader has done since it first saw this edition of the definition. */
export interface Migration {
  readonly kind: 'wait' | 'rewrite';
  /** Changes with every edit of the definition, but not with its status. */
  readonly edition: string;
  /** The version in which the API server stores what is written from now on. */
  readonly storage: string;
  /** Monotonic milliseconds. */
  readonly seenAt: number;
  /** UIDs of the objects that have been stored anew. */
  readonly written: Set<string>;
}

/** Other API servers learn of an edit within seconds; until then, they may store the old version. */
export const SETTLE_MS = 60_000;

/** Undefined if nothing is to be stored anew. */
export function decideMigration(definition: KubeObject, before: Migration | undefined, now: number): Migration | undefined {
  const versions = tablesAt(definition, 'spec', 'versions');
  const current = versions.findIndex(({ storage }) => storage === true);
  const listed = valueAt(definition, 'status', 'storedVersions');
  // Our definitions list the oldest version first.
  const stored = Array.isArray(listed) ? listed.map((name) => versions.findIndex((each) => each['name'] === name)) : [];
  // After a downgrade, a rewrite would drop the fields that only the newer definition has.
  if (!stored.some((index) => index < current) || stored.some((index) => index > current)) return undefined;
  const { uid = '', generation = 0 } = definition.metadata;
  const edition = `${uid}/${generation}`;
  if (before?.edition === edition) return { ...before, kind: now - before.seenAt < SETTLE_MS ? 'wait' : 'rewrite' };
  return { kind: 'wait', edition, storage: String(versions[current]?.['name']), seenAt: now, written: new Set() };
}
