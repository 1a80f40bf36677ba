/** The form of saved results (`bench/results/*.json`). Pure. */
import { z } from 'zod';

const Goal = z.object({
  what: z.string(),
  /** The measured value with its unit, or why there is none. */
  figure: z.string(),
  /** The goal as text: `≥ 0.65 ×`. */
  goal: z.string(),
  /** Whether it was met. Not there if it could not be judged. */
  met: z.boolean().optional(),
  /** Not there if it could not be judged: such a value is not compared. */
  value: z.number().optional(),
  unit: z.string().optional(),
  better: z.enum(['higher', 'lower']).optional(),
});

const TableRow = z.object({
  name: z.string(),
  requestsPerSecond: z.number(),
  /** CPU time of the proxy per request, in microseconds. */
  cpuUs: z.number().optional(),
  /** Share of one core. */
  busy: z.number().optional(),
  failures: z.number(),
  validity: z.enum(['valid', 'waited', 'void']),
});

const Table = z.object({
  title: z.string(),
  /** The row that the others are compared with. */
  against: z.string(),
  rows: z.array(TableRow),
});

/** Figures that are no ratios to requests: cells with their units. */
const Grid = z.object({
  title: z.string(),
  header: z.array(z.string()),
  rows: z.array(z.array(z.string())),
});

const Machine = z.object({
  cpu: z.string(),
  cores: z.number(),
  arch: z.string(),
  memoryGb: z.number(),
  kernel: z.string(),
  node: z.string(),
  /** Versions of the programs that the measurement uses, where they are installed. */
  programs: z.record(z.string(), z.string()),
  /** Of the last minute, before the measurement began. */
  loadAverage: z.number(),
});

export const ResultSchema = z.object({
  /** ISO 8601. */
  savedAt: z.string(),
  commit: z.string(),
  /** Whether files differed from the commit. */
  modified: z.boolean(),
  machine: Machine,
  measurements: z.record(z.string(), z.object({ goals: z.array(Goal), tables: z.array(Table), grids: z.array(Grid).optional() })),
});

export type Result = z.infer<typeof ResultSchema>;
export type Machine = z.infer<typeof Machine>;
export type Goal = z.infer<typeof Goal>;
export type ResultTable = z.infer<typeof Table>;
export type ResultGrid = z.infer<typeof Grid>;

/** Throws if a text is not a result. Returns the oldest first. */
export function parseResults(texts: readonly string[]): readonly Result[] {
  return texts
    .map((text) => ResultSchema.parse(JSON.parse(text)))
    .toSorted((left, right) => (left.savedAt < right.savedAt ? -1 : left.savedAt > right.savedAt ? 1 : 0));
}

/** What makes ratios of two machines comparable: their processor, how many cores there are, and the major version of Node. */
export function kindOf({ cpu, cores, arch, node }: Machine): string {
  return `${cpu}, ${cores} ${cores === 1 ? 'core' : 'cores'}, ${arch}, Node ${/\d+/.exec(node)?.[0] ?? node}`;
}

/** A warning if the ratios of two machines of one kind may differ although the code does not: a kernel can change what system calls and switches cost. */
export function warnOfKernel(saved: Machine, measured: Machine): readonly string[] {
  if (saved.kernel === measured.kernel) return [];
  const change = `Another kernel: saved under "${saved.kernel}", measured under "${measured.kernel}"`;
  return [`${change}. Measure the earlier commit on this machine too before you call a difference a regression`];
}
