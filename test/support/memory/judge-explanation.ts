/** Judges one explanation of how memory is shared: that its numbers add up, that its text says what its data says, and that it is true of the processes. Pure. */

export interface Explanation {
  readonly name: string;
  readonly text: string;
  readonly memory: {
    readonly admitted: boolean;
    readonly short: {
      readonly bytes: number;
      readonly budget_bytes: number;
      readonly promised_bytes: number;
      readonly others_bytes: number;
      readonly kept_for?: string | null;
    } | null;
    readonly candidates: readonly ExplainedSlot[];
  } | null;
}

export interface ExplainedSlot {
  readonly slot: string;
  readonly bytes: number;
  readonly running: boolean;
  readonly admitted: boolean;
  readonly because: string;
}

/** The slots that had the same process before and after the explanation was read, and those that had none at both times. */
export interface Steady {
  readonly running: ReadonlySet<string>;
  readonly absent: ReadonlySet<string>;
}

/** What was wrong, a line each. */
export function judgeExplanation({ name, text, memory }: Explanation, steady: Steady): readonly string[] {
  if (memory === null || memory.candidates.length === 0) return [];
  const wrong = [...sums(name, memory), ...memory.candidates.flatMap((each) => [...said(each, text), ...isTrue(each, steady)])];
  return wrong.map((each) => `${each}:\n${text}`);
}

function sums(name: string, { admitted, short, candidates }: NonNullable<Explanation['memory']>): readonly string[] {
  const own = candidates.find(({ slot }) => slot === name);
  const given = candidates.filter((each) => each.admitted).reduce((sum, { bytes }) => sum + bytes, 0);
  const budget = short?.budget_bytes ?? 0;
  const lacks = short === null || short.bytes + short.promised_bytes + short.others_bytes > budget;
  const isKept = candidates.some((each) => each.slot === short?.kept_for && !each.admitted);
  return [
    ...(given > budget ? [`The explanation of "${name}" gives away ${given} bytes of ${budget}`] : []),
    ...(own !== undefined && own.admitted !== admitted ? [`The explanation of "${name}" contradicts itself`] : []),
    ...(own === undefined && !admitted ? [`The explanation of "${name}" does not name it`] : []),
    ...(admitted || lacks !== isKept ? [] : [`The explanation of "${name}" does not say what it waits for`]),
  ];
}

function said({ slot, running, admitted }: ExplainedSlot, text: string): readonly string[] {
  const verb = running ? (admitted ? 'keeps' : 'gives up') : admitted ? 'gets' : 'waits for';
  return text.includes(`    "${slot}" ${verb} `) ? [] : [`The explanation does not say that "${slot}" ${verb} its memory`];
}

function isTrue({ slot, running, admitted, because }: ExplainedSlot, { running: present, absent }: Steady): readonly string[] {
  // What was decided to start is shown so until the next pass.
  if (!running && !admitted && present.has(slot)) return [`"${slot}" runs, and the explanation says that it does not`];
  const mustRun = running && admitted && because !== 'loading' && because !== 'always';
  return mustRun && absent.has(slot) ? [`"${slot}" does not run, and the explanation says that it does`] : [];
}
