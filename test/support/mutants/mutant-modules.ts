/**
 * Imports modules of this project with a fault in their source: one text of one file is replaced while Node reads it, and nothing on disk changes.
 * Each mutant has a module graph of its own, so that one process can try many. Works in plain Node only, not within jest.
 */
import { registerHooks, type LoadFnOutput } from 'node:module';
import { pathToFileURL } from 'node:url';
import { applyMutant, type Mutant } from './mutant.ts';

export interface MutantModules {
  /** Imports a file of the project, and everything it imports, with this mutant in place; undefined: as it is. */
  load(path: string, mutant: Mutant | undefined): Promise<Readonly<Record<string, unknown>>>;
}

const QUERY = 'mutant';

/** `root`: absolute path of the project. */
export function createMutantModules(root: string): MutantModules {
  const base = pathToFileURL(`${root}/`).href;
  const mutants: (Mutant | undefined)[] = [];
  const applied = new Set<number>();
  const numberOf = (url: string | undefined): string | null =>
    url?.startsWith(base) === true ? new URL(url).searchParams.get(QUERY) : null;
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context);
      const number = numberOf(context.parentURL);
      const own = resolved.url.startsWith(base) && !resolved.url.includes('/node_modules/');
      return number === null || !own ? resolved : { ...resolved, url: `${resolved.url}?${QUERY}=${number}` };
    },
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      const number = numberOf(url);
      const mutant = number === null ? undefined : mutants[Number(number)];
      if (mutant === undefined || !url.startsWith(`${base}${mutant.file}?`)) return loaded;
      applied.add(Number(number));
      return { ...loaded, source: applyMutant(textOf(loaded.source), mutant) };
    },
  });
  return {
    async load(path, mutant) {
      const number = mutants.push(mutant) - 1;
      const loaded: Readonly<Record<string, unknown>> = await import(`${base}${path}?${QUERY}=${number}`);
      if (mutant !== undefined && !applied.has(number)) throw new Error(`Name another file: "${mutant.file}" is not part of "${path}"`);
      return loaded;
    },
  };
}

function textOf(source: LoadFnOutput['source']): string {
  if (typeof source === 'string') return source;
  return source === undefined || source === null ? '' : new TextDecoder().decode(source);
}
