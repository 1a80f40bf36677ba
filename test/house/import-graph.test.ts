/** What holds of all imports of src/ together: no cycle of any kind, and the code for clusters is loaded in a cluster only. */
import { describe, expect, test } from '@jest/globals';
import { cyclesIn, loadedGraph, reachableFrom, sourcesOf, wholeGraph } from './import-graph.ts';

const sources = sourcesOf('src');

test('there is no cycle of imports in src/, not even of types', () => {
  expect(cyclesIn(wholeGraph(sources))).toEqual([]);
});

test('the planner imports in one direction: facts, rules, steps, outcome', () => {
  const order = ['facts', 'rules', 'steps', 'outcome'].map((name) => `src/reconciler/decide/${name}/`);
  const rank = (path: string) => order.findIndex((folder) => path.startsWith(folder));
  const upward = [...wholeGraph(sources)].flatMap(([file, imports]) =>
    imports.filter((imported) => rank(file) >= 0 && rank(imported) > rank(file)).map((imported) => `${file} → ${imported}`),
  );
  expect(upward).toEqual([]);
});

describe.each(['src/main.ts', 'src/cli/verbs/serve.ts'])('%s', (start) => {
  const loaded = reachableFrom(start, loadedGraph(sources));

  test('loads the service', () => {
    expect(loaded).toContain('src/reconciler/loop.ts');
    expect(loaded).toContain('src/api/server/server.ts');
  });

  test('loads no file of src/cluster/ outside a cluster', () => {
    expect([...loaded].filter((path) => path.startsWith('src/cluster/'))).toEqual([]);
  });
});

describe('svcctl loads no package for schemas, which takes longer than the rest of a verb,', () => {
  const graph = loadedGraph(sources);
  const startsWithZod = (path: string): boolean => /^import (?!type).* from 'zod';$/m.test(sources.get(path) ?? '');
  const zodIn = (start: string): readonly string[] => [...reachableFrom(start, graph)].filter(startsWithZod);

  test.each(['program', 'connect/client', 'connect/wait-for-slot'])('to begin: %s', (file) => {
    expect(zodIn(`src/cli/${file}.ts`)).toEqual([]);
  });

  test.each(['get', 'model', 'model-catalogue', 'slot'])('for the verbs of "%s"', (file) => {
    expect(zodIn(`src/cli/verbs/${file}.ts`)).toEqual([]);
  });

  test('but for verbs that read files of slots', () => {
    expect(zodIn('src/cli/verbs/compare-slots.ts')).not.toEqual([]);
  });
});

test('the code for clusters is loaded by one dynamic import', () => {
  const whole = wholeGraph(sources);
  const loaded = loadedGraph(sources);
  const dynamic = (whole.get('src/wiring/choose-runtime.ts') ?? []).filter(
    (path) => !(loaded.get('src/wiring/choose-runtime.ts') ?? []).includes(path),
  );
  expect(dynamic).toContain('src/wiring/cluster-world.ts');
  expect(reachableFrom('src/wiring/cluster-world.ts', loaded)).toContain('src/cluster/client/api-client.ts');
});

test('only the registry imports the folder of a provider, so that nothing else changes with a new one', () => {
  const isOfOneProvider = (path: string): boolean => /^src\/providers\/(?!decide\/)[^/]+\//.test(path);
  const importers = [...wholeGraph(sources)].filter(([path, targets]) => !isOfOneProvider(path) && targets.some(isOfOneProvider));
  expect(importers.map(([path]) => path)).toEqual(['src/providers/registry.ts']);
});

test('only wiring/ and the entry points know the wing for speed', () => {
  const importers = [...wholeGraph(sources)].filter(
    ([path, targets]) => !path.startsWith('src/turbo/') && targets.some((target) => target.startsWith('src/turbo/')),
  );
  const others = importers.map(([path]) => path).filter((path) => !path.startsWith('src/wiring/'));
  expect(others.toSorted()).toEqual(['src/cli/svcctl.ts', 'src/main.ts']);
});

describe('The graph', () => {
  const a = 'src/a.ts';
  const b = 'src/b.ts';
  const kinds: Readonly<Record<string, string>> = {
    'an import': "import { a } from './a.ts';\nexport const b = a;\n",
    'an import over several lines': "import {\n  a,\n  type B,\n} from './a.ts';\nexport const b: B = a;\n",
    'an import of types': "import type { A } from './a.ts';\nexport type B = A;\n",
    'a re-export': "export { a } from './a.ts';\n",
    'a re-export of types': "export type { A } from './a.ts';\n",
    'a re-export of everything': "export * from './a.ts';\n",
    'an import without names': "import './a.ts';\n",
    'a dynamic import': "export const load = async (): Promise<unknown> => import('./a.ts');\n",
    'a type of an import': "export type B = import('./a.ts').A;\n",
  };
  const loads = new Set([
    'an import',
    'an import over several lines',
    'a re-export',
    'a re-export of everything',
    'an import without names',
  ]);

  test.each(Object.entries(kinds))('has a cycle through %s', (_kind, text) => {
    const graph = wholeGraph(
      new Map([
        [a, "import { b } from './b.ts';\nexport const a = b;\n"],
        [b, text],
      ]),
    );
    expect(cyclesIn(graph)).toEqual([`${a} → ${b} → ${a}`]);
  });

  test.each(Object.entries(kinds))('knows whether %s loads the file', (kind, text) => {
    const graph = loadedGraph(
      new Map([
        [a, ''],
        [b, text],
      ]),
    );
    expect(reachableFrom(b, graph).has(a)).toBe(loads.has(kind));
  });

  test('reports a long cycle once, and a file without cycle not at all', () => {
    const imports = (path: string) => `import '${path}';\n`;
    const graph = wholeGraph(
      new Map([
        [a, imports('./b.ts')],
        [b, imports('./c.ts')],
        ['src/c.ts', imports('./a.ts')],
        ['src/d.ts', imports('./a.ts')],
      ]),
    );
    expect(cyclesIn(graph)).toEqual(['src/a.ts → src/b.ts → src/c.ts → src/a.ts']);
  });
});
