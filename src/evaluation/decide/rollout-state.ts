/**
 * Which text of a slot is in force where new models are judged by cases. A text that says the same of its model as the
 * accepted one is in force at once. Any other is on trial: it is in force, and its server gets no requests until a
 * verdict is settled. A text that is rolled back waits, like that of a paused slot, until it or the cases are edited:
 *
 *     no text has served         accepted    whatever it says
 *     same model as accepted     accepted
 *     another model              on trial    "passed" → accepted   "held" → on trial   "rolled_back" → waits
 *     another model, no cases    in force    accepted once it serves
 *
 * An accepted text of another model may be watched for a while, and is rolled back if its model fails meanwhile.
 *
 * The number of pods is no part of a text: autoscalers change it, and the newest one is in force. Pure.
 */
import { z } from 'zod';
import { defined } from '../../schema/pod/kube-fields.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { Miss, Score, type EvaluationCase } from '../../schema/slot/evaluation-case.ts';
import type { AcceptedText } from '../../schema/slot/paused-text.ts';
import { canRollBack, hasChecks } from '../../schema/slot/scaling.ts';
import type { SlotSpec } from '../../schema/slot/slot-spec.ts';
import type { EvaluationReport } from './evaluation-report.ts';

export interface Checks {
  /** Changes with the cases. */
  readonly digest: string;
  readonly cases: readonly EvaluationCase[];
}

const Report = z.object({
  cases: z.int(),
  passed: z.int(),
  misses: z.array(Miss).max(10),
  firstTokenP95: z.number().optional(),
  tokensPerSecond: z.number().optional(),
  totalMs: z.number().optional(),
});

const Verdict = z.object({
  outcome: z.enum(['passed', 'held', 'rolled_back']),
  /** The revision of the workload that it is about; empty if none was started. */
  revision: z.string(),
  /** Digest of the cases. */
  checks: z.string(),
  because: z.string(),
  misses: z.array(Miss).max(10),
  /** Undefined unless the model answered the cases and failed. */
  score: Score.optional(),
});
export type Verdict = Readonly<z.infer<typeof Verdict>>;

/** The text that served last, and the answers of its model, if it was asked. */
export interface Accepted extends AcceptedText {
  readonly revision: string;
  readonly baseline?: { readonly checks: string; readonly report: EvaluationReport } | undefined;
}

/** `since`: in monotonic milliseconds; undefined until the model serves in this process. */
interface Watched {
  /** The text to which a failure returns. */
  readonly previous: Accepted;
  readonly since: number | undefined;
}

export interface RolledBack extends AcceptedText {
  readonly verdict: Verdict;
}

export interface RolloutState {
  /** Undefined until they can be read. */
  readonly checks: Checks | undefined;
  /** Undefined before anything has served. */
  readonly accepted?: Accepted | undefined;
  readonly isOnTrial: boolean;
  /** About the text that is on trial. */
  readonly verdict?: Verdict | undefined;
  /** Set while the model of the accepted text is watched. */
  readonly watched?: Watched | undefined;
  /** The newest text, which is not in force. */
  readonly rolledBack?: RolledBack | undefined;
}

/** What became of a workload of this generation. An edit in the meantime makes it void. */
export type Settlement = { readonly generation: number } & (
  | { readonly kind: 'served'; readonly revision: string; /** In monotonic milliseconds. */ readonly at: number }
  /** The time is over in which it was watched. */
  | { readonly kind: 'proven' }
  | { readonly kind: 'baseline'; readonly revision: string; readonly checks: string; readonly report: EvaluationReport }
  | { readonly kind: 'verdict'; readonly verdict: Verdict }
);

interface Texts {
  readonly inForce: AcceptedText;
  readonly rollout: RolloutState | undefined;
}

/** `checks`: those of the newest text. */
export function judgeText(
  before: { readonly [Part in keyof Texts]: Texts[Part] | undefined },
  newest: AcceptedText,
  checks: Checks | undefined,
): Texts {
  const { accepted, rolledBack, watched } = before.rollout ?? {};
  if (!canRollBack(newest.spec.rollout)) return { inForce: newest, rollout: undefined };
  if (accepted === undefined) return { inForce: newest, rollout: { checks, isOnTrial: false } };
  const holds = ({ checks: digest }: Verdict): boolean => checks === undefined || digest === checks.digest;
  if (rolledBack !== undefined && holds(rolledBack.verdict) && isSameValue(scaledAs(rolledBack, newest).spec, newest.spec)) {
    const inForce = scaledAs(accepted, newest);
    return { inForce, rollout: { checks, accepted, isOnTrial: false, rolledBack: { ...newest, verdict: rolledBack.verdict } } };
  }
  if (!changesModel(accepted.spec, newest.spec))
    return { inForce: newest, rollout: { checks, accepted: { ...accepted, ...newest }, isOnTrial: false, ...defined({ watched }) } };
  if (!hasChecks(newest.spec.rollout)) return { inForce: newest, rollout: { checks, accepted, isOnTrial: false, ...defined({ watched }) } };
  const verdict = before.inForce !== undefined && !changesModel(before.inForce.spec, newest.spec) ? before.rollout?.verdict : undefined;
  return {
    inForce: newest,
    rollout: { checks, accepted, isOnTrial: true, ...defined({ watched, verdict: verdict && holds(verdict) ? verdict : undefined }) },
  };
}

function scaledAs<Text extends AcceptedText>(text: Text, { spec }: AcceptedText): Text {
  const { replicas } = spec.cluster;
  if (replicas === text.spec.cluster.replicas) return text;
  const scaled = { ...text.spec, cluster: { ...text.spec.cluster, replicas } };
  return { ...text, spec: scaled, document: { ...text.document, replicas } };
}

/** Whether another model, or the same one on another server or build of a server, answers. */
function changesModel(before: SlotSpec, after: SlotSpec): boolean {
  const parts = ({
    provider,
    backend,
    engine,
    program,
    model,
    remote,
    resources,
    env,
    cluster: { replicas: _replicas, ...cluster },
  }: SlotSpec) => {
    const { aliases: _aliases, presets: _presets, ...served } = model;
    return [provider, backend, engine, program, served, remote, resources, env, cluster];
  };
  return !isSameValue(parts(before), parts(after));
}

/** The texts after a settlement; the same object if it is void. */
export function settleRollout<State extends Texts>(state: State, settlement: Settlement): State | Texts {
  const { inForce, rollout } = state;
  if (rollout === undefined) return state;
  const { accepted, checks } = rollout;
  switch (settlement.kind) {
    case 'served': {
      const { revision, at } = settlement;
      const baseline = accepted?.revision === revision ? accepted.baseline : undefined;
      const previous = rollout.watched?.previous ?? accepted;
      const isWatched = inForce.spec.rollout?.watch !== undefined && previous !== undefined && changesModel(previous.spec, inForce.spec);
      const watched = isWatched ? { previous, since: at } : undefined;
      // It may be the text that came back, on another build.
      const { rolledBack } = rollout;
      const serves = { ...inForce, revision, baseline };
      return { inForce, rollout: { checks, accepted: serves, isOnTrial: false, ...defined({ watched, rolledBack }) } };
    }
    case 'proven':
      return rollout.watched === undefined ? state : { inForce, rollout: { ...rollout, watched: undefined } };
    case 'baseline':
      if (accepted?.revision !== settlement.revision) return state;
      return { inForce, rollout: { ...rollout, accepted: { ...accepted, baseline: settlement } } };
    case 'verdict': {
      const { verdict } = settlement;
      const { isOnTrial, watched } = rollout;
      const back = isOnTrial ? accepted : watched?.previous;
      if (back === undefined) return state;
      if (verdict.outcome !== 'rolled_back') return isOnTrial ? { inForce, rollout: { ...rollout, verdict } } : state;
      const rolledBack = { ...inForce, verdict };
      return {
        inForce: scaledAs(back, inForce),
        rollout: { checks, accepted: back, isOnTrial: false, ...defined({ watched: isOnTrial ? watched : undefined }), rolledBack },
      };
    }
    default:
      return settlement satisfies never;
  }
}

type ParseText = (document: unknown) => AcceptedText | undefined;

/** What outlives a restart: the texts and the verdicts, without the cases. */
export const storedRollout = ({ accepted, isOnTrial, verdict, watched, rolledBack }: RolloutState) => ({
  accepted: accepted && storedText(accepted),
  isOnTrial,
  verdict,
  previous: watched && storedText(watched.previous),
  rolledBack: rolledBack && { document: rolledBack.document, verdict: rolledBack.verdict },
});

const storedText = ({ generation, document, revision, baseline }: Accepted) => ({ generation, document, revision, baseline });

const StoredText = z.object({
  generation: z.int().optional(),
  document: z.unknown(),
  revision: z.string(),
  baseline: z.object({ checks: z.string(), report: Report }).optional(),
});

const Stored = z.object({
  accepted: StoredText.optional(),
  isOnTrial: z.boolean(),
  verdict: Verdict.optional(),
  previous: StoredText.optional(),
  rolledBack: z.object({ document: z.unknown(), verdict: Verdict }).optional(),
});

/** Undefined if there is none, or if this version no longer accepts it. */
export function recallRollout(stored: unknown, parse: ParseText): RolloutState | undefined {
  const known = isTable(stored) ? Stored.safeParse(stored).data : undefined;
  if (known === undefined) return undefined;
  const recallText = (text: z.infer<typeof StoredText> | undefined): Accepted | undefined => {
    const parsed = text && parse(text.document);
    return parsed && text && { ...parsed, generation: text.generation, revision: text.revision, baseline: reportOf(text.baseline) };
  };
  const accepted = recallText(known.accepted);
  const previous = recallText(known.previous);
  const rejected = known.rolledBack && parse(known.rolledBack.document);
  const rolledBack = rejected && known.rolledBack && { ...rejected, verdict: known.rolledBack.verdict };
  const isOnTrial = known.isOnTrial && accepted !== undefined;
  const watched = accepted && previous && { previous, since: undefined };
  return { checks: undefined, accepted, isOnTrial, ...(isOnTrial ? { verdict: known.verdict } : {}), ...defined({ watched }), rolledBack };
}

const reportOf = (baseline: { readonly checks: string; readonly report: z.infer<typeof Report> } | undefined): Accepted['baseline'] =>
  baseline && {
    checks: baseline.checks,
    report: withTimes(baseline.report),
  };

function withTimes({ firstTokenP95, tokensPerSecond, totalMs, ...report }: z.infer<typeof Report>): EvaluationReport {
  return { ...report, firstTokenP95, tokensPerSecond, ...(totalMs === undefined ? {} : { totalMs }) };
}
