/** Every line of the import table refuses what it does not list, and lets through what it lists. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { lint, type Finding } from './lint-fixtures.ts';

/** Folder → what it may import, and what as types only. A second copy of the table, so that a change of either is noticed. */
const HOUSE: Readonly<Record<string, { readonly may: readonly string[]; readonly types?: readonly string[] }>> = {
  schema: { may: [] },
  platform: { may: ['schema'], types: ['reconciler/ports.ts', 'providers/provider.ts'] },
  reconciler: { may: ['schema', 'platform', 'providers/provider.ts'] },
  gateway: { may: ['schema', 'platform', 'providers/provider.ts', 'reconciler/board.ts'], types: ['reconciler/ports.ts'] },
  providers: { may: ['schema', 'platform'] },
  models: { may: ['schema', 'platform', 'files'], types: ['reconciler/ports.ts', 'providers/provider.ts'] },
  auth: { may: ['schema', 'platform', 'files'] },
  files: { may: ['schema', 'platform', 'reconciler/ports.ts'] },
  host: { may: ['schema', 'platform', 'files', 'reconciler/ports.ts'] },
  cluster: {
    may: ['schema', 'platform', 'files', 'models', 'reconciler/ports.ts'],
    types: ['providers/provider.ts', 'reconciler/board.ts'],
  },
  api: { may: ['schema', 'platform', 'gateway', 'auth', 'models', 'reconciler/board.ts'] },
  wiring: {
    may: ['schema', 'platform', 'reconciler', 'gateway', 'providers', 'models', 'auth', 'files', 'host', 'api'],
    types: ['cluster'],
  },
  dashboard: { may: [], types: ['schema'] },
};
const TARGETS = [
  'schema/words/names.ts',
  'platform/clock.ts',
  'reconciler/loop.ts',
  'reconciler/ports.ts',
  'reconciler/board.ts',
  'gateway/traffic/hold.ts',
  'providers/provider.ts',
  'providers/registry.ts',
  'models/store.ts',
  'auth/token-store.ts',
  'files/write-file.ts',
  'host/podman/podman-runtime.ts',
  'cluster/client/ports.ts',
  'api/server/server.ts',
  'wiring/world.ts',
  'cli/svcctl.ts',
  'dashboard/page.ts',
  'main.ts',
];

interface Case {
  readonly from: string;
  readonly target: string;
  readonly kind: 'value' | 'type' | 'dynamic' | 're-export';
  readonly allowed: boolean;
}

const covers = (patterns: readonly string[], target: string) => patterns.some((each) => target === each || target.startsWith(`${each}/`));

const CASES: readonly Case[] = Object.entries(HOUSE).flatMap(([from, { may, types = [] }]) =>
  TARGETS.filter((target) => !target.startsWith(`${from}/`)).flatMap((target) => {
    const value = covers(may, target);
    return [
      { from, target, kind: 'value', allowed: value },
      { from, target, kind: 'dynamic', allowed: value },
      { from, target, kind: 're-export', allowed: value },
      { from, target, kind: 'type', allowed: value || covers(types, target) },
    ] as const;
  }),
);

const pathOf = (each: Case) => `src/${each.from}/x-${each.kind}-${each.target.replaceAll(/[/.]/g, '-')}.ts`;

function textOf({ target, kind }: Case): string {
  const path = `'../${target}'`;
  if (kind === 'type') return `import type { Thing } from ${path};\nexport const size = (thing: Thing): number => thing.size;\n`;
  if (kind === 'dynamic') return `export const load = async (): Promise<unknown> => import(${path});\n`;
  if (kind === 're-export') return `export { thing } from ${path};\n`;
  return `import { thing } from ${path};\nexport const size = thing.size;\n`;
}

const ALLOWED = {
  'src/main.ts': "export { thing } from './host/podman/podman-runtime.ts';\nexport { thing as other } from './api/server.ts';\n",
  'src/cli/serve.ts': "export { thing } from '../host/podman/podman-runtime.ts';\nexport { thing as other } from '../main.ts';\n",
  'src/api/v1/deep.ts': "export { thing } from '../server.ts';\nexport { thing as other } from '../../gateway/hold.ts';\n",
  'src/wiring/cluster-world.ts': "export { thing } from '../cluster/client/ports.ts';\n",
  'src/schema/uses-zod.ts': "export { z } from 'zod';\n",
  'src/models/model-sources.ts': "export { thing } from '../../toolboxes/demo/demo-models.ts';\n",
};
const REFUSED = {
  'src/schema/uses-fastify.ts': "export { fastify } from 'fastify';\n",
  'src/schema/uses-node.ts': "export { readFile } from 'node:fs/promises';\n",
  'src/api/v1/deep-refused.ts': "export { thing } from '../../host/podman/podman-runtime.ts';\n",
  'src/reconciler/decide/deep-refused.ts': "import type { Thing } from '../../providers/gguf/start-cmd.ts';\nexport type Other = Thing;\n",
  'src/host/uses-test.ts': "export { thing } from '../../test/support/thing.ts';\n",
  'src/host/uses-scripts.ts': "export { thing } from '../../scripts/thing.ts';\n",
  'src/models/uses-demo.ts': "export { thing } from '../../toolboxes/demo/demo-models.ts';\n",
  'src/files/inline-type.ts': "export const size = (thing: import('../gateway/hold.ts').Thing): number => thing.size;\n",
  'src/host/uses-cluster.ts': "export { thing } from '../cluster/client/ports.ts';\n",
  'src/cluster/uses-host.ts': "import type { Thing } from '../host/podman/podman-runtime.ts';\nexport type Other = Thing;\n",
  'src/wiring/other-world.ts': "export { thing } from '../cluster/client/ports.ts';\n",
  'src/unknown-folder/thing.ts': 'export const thing = 1;\n',
};

describe('Imports between the folders of src/', () => {
  let findings: ReadonlyMap<string, readonly Finding[]>;
  beforeAll(async () => {
    const thing = 'export interface Thing {\n  readonly size: number;\n}\nexport const thing: Thing = { size: 1 };\n';
    const targets = Object.fromEntries(TARGETS.map((target) => [`src/${target}`, thing]));
    const cases = Object.fromEntries(CASES.map((each) => [pathOf(each), textOf(each)]));
    const found = await lint({ ...targets, ...cases, ...ALLOWED, ...REFUSED });
    findings = Map.groupBy(
      found.filter((each) => each.rule === 'house(import-direction)'),
      (each) => each.file,
    );
  }, 60_000);

  for (const [from] of Object.entries(HOUSE)) {
    for (const allowed of [true, false]) {
      const own = CASES.filter((each) => each.from === from && each.allowed === allowed);
      if (own.length === 0) continue;
      test(`"${from}" ${allowed ? 'may import' : 'may not import'} what the table ${allowed ? 'lists' : 'does not list'} (${own.length} cases)`, () => {
        const wrong = own.filter((each) => findings.has(pathOf(each)) === allowed).map((each) => `${each.kind} of ${each.target}`);
        expect(wrong).toEqual([]);
      });
    }
  }

  test.each(Object.keys(ALLOWED))('%s is let through', (path) => {
    expect(findings.get(path)).toBeUndefined();
  });

  test.each(Object.keys(REFUSED))('%s is refused', (path) => {
    expect(findings.get(path)).toHaveLength(1);
  });

  test.each([
    ['host', 'cluster/client/ports.ts'],
    ['cluster', 'host/podman/podman-runtime.ts'],
  ])('"host" and "cluster" never import each other: "%s" does not import "%s" in any way', (from, target) => {
    const cases = CASES.filter((each) => each.from === from && each.target === target);
    expect(cases.map(({ kind }) => kind)).toEqual(['value', 'dynamic', 're-export', 'type']);
    expect(cases.filter((each) => !findings.has(pathOf(each)))).toEqual([]);
  });

  test('the message lists what may be imported and names the table', () => {
    const [finding] = findings.get('src/gateway/x-value-host-podman-podman-runtime-ts.ts') ?? [];
    expect(finding?.message).toBe(
      'Do not import "host/podman/podman-runtime.ts" in "gateway": it may import "schema/", "platform/", "providers/provider.ts", "reconciler/board.ts", "remote/", types of "reconciler/ports.ts", types of "providers/translation.ts" (table: "scripts/lint/import-table.mjs")',
    );
  });
});
