/**
 * Imports modules of this project with a fault in their source: one text of one file is replaced while Node reads it, and nothing on disk changes.
 * Each mutant has modules of its own where they depend on this file, so that one process can try many; the others are shared, which saves most of the
 * time. Works in plain Node only, not within jest.
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
  /** Who imports each module, as the program is without a mutant. */
  const importers = new Map<string, Set<string>>();
  const affected: ReadonlySet<string>[] = [];
  const numberOf = (url: string | undefined): string | null =>
    url?.startsWith(base) === true ? new URL(url).searchParams.get(QUERY) : null;
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context);
      const number = numberOf(context.parentURL);
      const { url } = resolved;
      if (!url.startsWith(base) || url.includes('/node_modules/')) return resolved;
      if (number === null) importers.set(url, (importers.get(url) ?? new Set()).add(context.parentURL ?? ''));
      const isShared = number === null || (importers.has(url) && affected[Number(number)]?.has(url) !== true);
      return isShared ? resolved : { ...resolved, url: `${url}?${QUERY}=${number}` };
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
      await import(`${base}${path}`);
      affected.push(mutant === undefined ? new Set() : dependents(`${base}${mutant.file}`, importers));
      const loaded: Readonly<Record<string, unknown>> = await import(`${base}${path}?${QUERY}=${number}`);
      if (mutant !== undefined && !applied.has(number)) throw new Error(`Name another file: "${mutant.file}" is not part of "${path}"`);
      return loaded;
    },
  };
}

/** A module and everything that imports it, directly or not. */
function dependents(url: string, importers: ReadonlyMap<string, ReadonlySet<string>>): ReadonlySet<string> {
  const found = new Set([url]);
  for (const each of found) for (const importer of importers.get(each) ?? []) found.add(importer);
  return found;
}

function textOf(source: LoadFnOutput['source']): string {
  if (typeof source === 'string') return source;
  return source === undefined || source === null ? '' : new TextDecoder().decode(source);
}
