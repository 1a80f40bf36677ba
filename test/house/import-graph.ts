/** Which files of src/ import which, read from their text. Test support for the rules about the whole graph. */
import { readFileSync, readdirSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { ROOT } from './lint-fixtures.ts';

/** File → files that it imports; paths from the top of the checkout. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

const DECLARATION = /^\s*(?:import|export)\s+(?:type\s+)?(?:\{[^}]*\}|\*(?:\s+as\s+\w+)?|\w+)\s+from\s+'([^']+)'/gm;
const SIDE_EFFECT = /^\s*import\s+'([^']+)'/gm;
/** As an expression and as a type. */
const CALL = /\bimport\(\s*'([^']+)'/g;

/** Path → text of every TypeScript file below a folder of the checkout. */
export function sourcesOf(folder: string): ReadonlyMap<string, string> {
  const paths = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(folder, path))
    .toSorted();
  return new Map(paths.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));
}

/** Every kind of import: of values, of types, re-exports, `import()` and `import('…')` types. */
export function wholeGraph(sources: ReadonlyMap<string, string>): ImportGraph {
  return graphOf(sources, (text) => specifiersIn(text, [DECLARATION, SIDE_EFFECT, CALL]));
}

/** What Node loads together with a file: imports that remain once types are removed, without `import()`. */
export function loadedGraph(sources: ReadonlyMap<string, string>): ImportGraph {
  return graphOf(sources, (text) => specifiersIn(stripTypeScriptTypes(text), [DECLARATION, SIDE_EFFECT]));
}

/** A file and everything that it imports, directly or not. */
export function reachableFrom(start: string, graph: ImportGraph): ReadonlySet<string> {
  const reached = new Set([start]);
  for (const file of reached) for (const imported of graph.get(file) ?? []) reached.add(imported);
  return reached;
}

/** One cycle for each file that takes part in one: from the file back to itself by the shortest way. */
export function cyclesIn(graph: ImportGraph): readonly string[] {
  const cycles = [...graph.keys()].flatMap((file) => {
    const way = shortestWay(file, graph);
    // Each cycle is reported once, from its first file.
    return way === undefined || way.some((each) => each < file) ? [] : [[...way, file].join(' → ')];
  });
  return cycles;
}

function shortestWay(file: string, graph: ImportGraph): readonly string[] | undefined {
  const ways = new Map<string, readonly string[]>([[file, [file]]]);
  for (const [reached, way] of ways) {
    for (const imported of graph.get(reached) ?? []) {
      if (imported === file) return way;
      if (!ways.has(imported)) ways.set(imported, [...way, imported]);
    }
  }
  return undefined;
}

function graphOf(sources: ReadonlyMap<string, string>, specifiers: (text: string) => readonly string[]): ImportGraph {
  return new Map(
    [...sources].map(([path, text]) => [
      path,
      specifiers(text)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => join(dirname(path), specifier))
        .filter((target) => sources.has(target)),
    ]),
  );
}

function specifiersIn(text: string, patterns: readonly RegExp[]): readonly string[] {
  return patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, specifier = '']) => specifier));
}
