/** Whether a model would fit into this machine's memory: admission's sums for a slot that does not exist. Pure. */
import type { MemoryDemand, MemorySplit } from '../../providers/provider.ts';
import type { Hardware } from '../../schema/status/hardware.ts';
import type { SlotSpec } from '../../schema/slot/slot-spec.ts';
import { poolsOfBackend, withDevices, HOST, type MemoryPool, type PoolBytes, type PoolId } from './facts/memory-pools.ts';
import { chooseSplit, placeMemory } from './rules/memory-turns.ts';
import { formatSize } from '../../schema/words/quantities.ts';

export interface FitQuestion {
  /** Includes the backend it would use. */
  readonly spec: SlotSpec;
  readonly estimate: (spec: SlotSpec) => MemoryDemand;
  readonly hardware: Hardware | undefined;
  readonly pools: readonly MemoryPool[];
  /** Memory reserved by the existing slots. */
  readonly promised: PoolBytes;
  /** The part of it that is loaded always. Default: none. */
  readonly firm?: PoolBytes;
  readonly splits?: (spec: SlotSpec) => readonly MemorySplit[];
}

interface Fit {
  readonly placement: PoolBytes;
  readonly split: MemorySplit | undefined;
  /** It fits beside other programs, if other slots give way. */
  readonly fits: boolean;
  /** It fits beside everything that the slots have now. */
  readonly fitsNow: boolean;
  /** The memory that decides: the one that is short, else the largest part. */
  readonly decisive: PoolShare;
  /** Largest context that would fit, in tokens, steps of 256; undefined if it fits anyway, or with no context. */
  readonly largestContext: number | undefined;
  /** A context of another size needs another amount of memory. */
  readonly dependsOnContext: boolean;
}

/** Undefined bytes: without a limit. */
interface PoolShare {
  readonly pool: PoolId;
  readonly neededBytes: number;
  /** Available to slots beside other programs. */
  readonly roomBytes: number | undefined;
  /** The part of it that slots have now. */
  readonly promisedBytes: number;
}

const CONTEXT_STEP = 256;
const LARGEST_CONTEXT = 2 ** 20;

export function findFit(question: FitQuestion): Fit {
  const { spec, pools, promised } = question;
  const beside = place(question, spec, promised);
  const alone = beside.fits ? beside : place(question, spec, {});
  const { placement, fits, split } = alone;
  const short = pools.find((pool) => (placement[pool.id] ?? 0) > roomOf(pool));
  const largest = Object.entries(placement).toSorted((a, b) => b[1] - a[1])[0]?.[0];
  const pool = short?.id ?? largest ?? '';
  const room = roomOf(pools.find(({ id }) => id === pool));
  return {
    placement,
    split,
    fits,
    fitsNow: beside.fits,
    decisive: {
      pool,
      neededBytes: placement[pool] ?? 0,
      roomBytes: Number.isFinite(room) ? room : undefined,
      promisedBytes: promised[pool] ?? 0,
    },
    largestContext: fits ? undefined : findLargestContext(question),
    dependsOnContext: dependsOnContext(question),
  };
}

function place(
  { estimate, splits, hardware, pools, firm = {} }: FitQuestion,
  spec: SlotSpec,
  used: PoolBytes,
): Pick<Fit, 'placement' | 'split' | 'fits'> {
  const byId = new Map(pools.map((pool) => [pool.id, pool]));
  const roomBeside = (some: PoolBytes) => (id: PoolId) => roomOf(byId.get(id)) - (some[id] ?? 0);
  const room = roomBeside(used);
  const whole = {
    demand: estimate(spec),
    pools: poolsOfBackend(withDevices(hardware, spec.resources.devices), spec.backend),
    gpus: spec.resources.gpus,
  };
  const needs = chooseSplit({ ...whole, splits: splits?.(spec) ?? [] }, roomBeside(firm));
  const placement = placeMemory(needs, room);
  return { placement, split: needs.split, fits: Object.entries(placement).every(([id, bytes]) => bytes <= room(id)) };
}

function roomOf(pool: MemoryPool | undefined): number {
  return pool?.budgetBytes === undefined ? Number.POSITIVE_INFINITY : pool.budgetBytes - pool.othersBytes;
}

const withContext = (spec: SlotSpec, context: number): SlotSpec => ({ ...spec, model: { ...spec.model, context } });

/** Models that draw or speak need the same memory with any context. */
function dependsOnContext({ spec, estimate }: FitQuestion): boolean {
  const [least, most] = [CONTEXT_STEP, LARGEST_CONTEXT].map((context) => estimate(withContext(spec, context)));
  return least?.hostBytes !== most?.hostBytes || least?.deviceBytes !== most?.deviceBytes;
}

/** A larger context never needs less. */
function findLargestContext(question: FitQuestion): number | undefined {
  const fits = (steps: number): boolean => place(question, withContext(question.spec, steps * CONTEXT_STEP), {}).fits;
  let low = 0;
  let high = LARGEST_CONTEXT / CONTEXT_STEP;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? undefined : low * CONTEXT_STEP;
}

interface FitWords {
  readonly model: string;
  /** Requested context in tokens; undefined: the model's own. */
  readonly context: number | undefined;
  readonly backend: string;
}

/** The answer in words. */
export function explainFit(
  { model, context, backend }: FitWords,
  { fits, fitsNow, decisive, largestContext, dependsOnContext, split, placement }: Fit,
): string {
  const size = !dependsOnContext ? '' : context === undefined ? ' with its own context' : ` with a context of ${context} tokens`;
  const parts = split === undefined ? [[decisive.pool, decisive.neededBytes] as const] : Object.entries(placement);
  const needs = `it needs ${parts.map(([pool, bytes]) => `${formatSize(bytes)} ${placeText({ pool })}`).join(' and ')}`;
  const divided = split === undefined ? '' : ` if the CPU computes ${split.onHost}`;
  if (decisive.roomBytes === undefined) return `"${model}" ${needs}${size} on "${backend}"; how much memory there is here is not known`;
  const where = split === undefined ? '' : ` ${placeText(decisive)}`;
  const room = `${formatSize(decisive.roomBytes)}${where} are there for slots`;
  if (fitsNow) return `"${model}" fits${size} on "${backend}"${divided}: ${needs}, and ${room}${promisedText(decisive)}`;
  if (fits) {
    const giveWay = 'It fits once other slots give way: idle ones that load on demand do so by themselves';
    return `"${model}" does not fit${size} on "${backend}" beside what the slots have now: ${needs}, and ${room}${promisedText(decisive)}. ${giveWay}`;
  }
  const advice =
    largestContext === undefined
      ? `Choose a smaller model or quantisation${dependsOnContext ? ': no context is small enough' : ''}`
      : `Set a context of ${largestContext} tokens or less, with which it fits`;
  return `"${model}" does not fit${size} on "${backend}": ${needs}, and ${room}. ${advice}`;
}

const placeText = ({ pool }: Pick<PoolShare, 'pool'>): string =>
  pool === HOST ? 'of the memory of the host' : `of the memory of device "${pool}"`;

function promisedText({ promisedBytes }: PoolShare): string {
  return promisedBytes === 0 ? '' : `, of which slots have ${formatSize(promisedBytes)} now`;
}
