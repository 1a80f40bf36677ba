/** Which text of a slot is in force while its rollouts are paused, and the edits that pause and resume them. Pure. */
import { isSameExcept } from '../words/same-value.ts';
import type { SlotSpec } from './slot-spec.ts';

type Document = Readonly<Record<string, unknown>>;

/** A valid text. */
export interface AcceptedText {
  /** Generation of the object when it had this text. Undefined outside of clusters. */
  readonly generation?: number | undefined;
  readonly spec: SlotSpec;
  readonly document: Document;
}

/** The newest text of a slot whose rollouts are paused. */
export interface PausedText extends AcceptedText {
  /** Whether it has more to say than that the slot is paused. */
  readonly waits: boolean;
}

export interface TextsInForce {
  readonly inForce: AcceptedText;
  /** Undefined unless rollouts are paused. */
  readonly paused: PausedText | undefined;
}

/**
 * While rollouts are paused, what was in force before stays so. A slot that had nothing in force is off, whatever its
 * text says.
 */
export function chooseText(before: AcceptedText | undefined, newest: AcceptedText): TextsInForce {
  if (newest.spec.rollout?.paused !== true) return { inForce: newest, paused: undefined };
  const inForce = before ?? { spec: { ...newest.spec, enabled: false }, document: { ...newest.document, enabled: false } };
  const waits = !isSameExcept({ rollout: undefined, ...inForce.spec }, { rollout: undefined, ...newest.spec }, 'rollout');
  return { inForce, paused: { ...newest, waits } };
}

/** The merge patch that pauses or resumes the rollouts of a document (keys in camelCase). */
export function pausePatch(document: Document | undefined, paused: boolean): Document {
  const { rollout } = document ?? {};
  const isAlone = typeof rollout === 'object' && rollout !== null && Object.keys(rollout).every((key) => key === 'paused');
  if (paused) return { rollout: { paused: true } };
  return { rollout: isAlone ? null : { paused: null } };
}
