/** One fault in the source of the program, as somebody might write it. */
export interface Mutant {
  /** What the program then does, after "The simulation notices a program that". */
  readonly fault: string;
  /** Relative to the root of the project. */
  readonly file: string;
  /** Text that is in the file exactly once. */
  readonly find: string;
  readonly replace: string;
  /** Where it matters: in clusters, on hosts with the real adapters, where each plan is compared with one that relies on nothing remembered, or where passes pause. Default: everywhere. */
  readonly worlds?: 'clusters' | 'hosts' | 'compared' | 'paused';
}

/** Returns the source with the fault in it. Throws unless the text to find is there exactly once: then the mutant would prove nothing. */
export function applyMutant(source: string, { file, find, replace }: Pick<Mutant, 'file' | 'find' | 'replace'>): string {
  const at = source.indexOf(find);
  if (at < 0) throw new Error(`Correct the mutant of "${file}": the file does not contain "${find}"`);
  if (source.indexOf(find, at + 1) >= 0) throw new Error(`Correct the mutant of "${file}": the file contains "${find}" more than once`);
  if (find === replace) throw new Error(`Correct the mutant of "${file}": it replaces "${find}" by the same text`);
  return `${source.slice(0, at)}${replace}${source.slice(at + find.length)}`;
}
