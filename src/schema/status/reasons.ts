/**
 * Every reason there is: why a slot is as it is, and why an operation failed. Findings, failures, conditions, Events, timeline causes and log
 * lines all use these words, and `docs/reference/conditions.md` is generated from them. A reason outside of the table does not compile.
 */
import { API_REASONS, POD_REASONS, SERVICE_REASONS } from '../cluster-reasons.ts';
import { AT_REST_REASONS, PROBLEM_REASONS, PROGRESS_REASONS } from './slot-reasons.ts';

/** In the order of the documentation. */
export const REASON_GROUPS = [
  { title: 'The slot is at rest', reasons: AT_REST_REASONS },
  { title: 'Everything is in order', reasons: PROGRESS_REASONS },
  { title: 'Something is wrong', reasons: PROBLEM_REASONS },
  { title: 'Pods of a cluster', reasons: POD_REASONS },
  { title: 'The API server of a cluster', reasons: API_REASONS },
  { title: 'The service itself', reasons: SERVICE_REASONS },
] as const;

export const REASONS = {
  ...AT_REST_REASONS,
  ...PROGRESS_REASONS,
  ...PROBLEM_REASONS,
  ...POD_REASONS,
  ...API_REASONS,
  ...SERVICE_REASONS,
} as const;

/** Kubelets name the resource that a node ran out of, and there may be any: `OutOfamd.com/gpu`. */
type OutOfResource = `OutOf${string}`;

export type Reason = keyof typeof REASONS | OutOfResource;

/** Reasons after which somebody must act. */
export type StalledReason = {
  [Each in keyof typeof REASONS]: (typeof REASONS)[Each] extends { stalled: true } ? Each : never;
}[keyof typeof REASONS];

/** Undefined for a word that is not in the table. */
export function parseReason(text: unknown): Reason | undefined {
  if (typeof text !== 'string') return undefined;
  return isListed(text) || isOutOfResource(text) ? text : undefined;
}

/** What to do about it. */
export function adviceFor(reason: Reason): string {
  return REASONS[isListed(reason) ? reason : 'OutOf'].action;
}

/** Whether the slot is at rest on purpose. */
export function isAtRestReason(reason: Reason): boolean {
  return Object.hasOwn(AT_REST_REASONS, reason);
}

function isListed(text: string): text is keyof typeof REASONS {
  return Object.hasOwn(REASONS, text);
}

function isOutOfResource(text: string): text is OutOfResource {
  return text.startsWith('OutOf');
}
