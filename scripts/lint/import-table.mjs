/**
 * Which folder of src/ may import what. The one place where the directions are written down: the rule "house/import-direction" reads it.
 * A folder may always import itself. `types` are allowed in `import type` only; `packages` undefined: any installed package.
 */
export const MAY_IMPORT = {
  spec: { values: [], packages: ['zod'] },
  reconciler: { values: ['spec/', 'providers/provider.ts'] },
  kube: { values: ['spec/', 'reconciler/ports.ts'] },
  sources: { values: ['spec/', 'reconciler/ports.ts', 'kube/'] },
  runtimes: { values: ['spec/', 'reconciler/ports.ts', 'kube/'] },
  providers: { values: ['spec/'] },
  dispatch: { values: ['spec/', 'providers/provider.ts', 'reconciler/board.ts'], types: ['reconciler/ports.ts'] },
  auth: { values: ['spec/'] },
  models: { values: ['spec/'], types: ['reconciler/ports.ts', 'providers/provider.ts'] },
  api: { values: ['spec/', 'dispatch/', 'auth/', 'models/', 'reconciler/board.ts'] },
  dashboard: { values: [], types: ['spec/'] },
  wiring: { values: ['spec/', 'reconciler/', 'kube/', 'sources/', 'runtimes/', 'providers/', 'dispatch/', 'auth/', 'models/', 'api/'] },
  cli: { values: ['*'] },
  'main.ts': { values: ['*'] },
};

/** Packages that compute and nothing else: what a `decide/` folder may import beside the vocabulary. */
export const PURE_PACKAGES = ['zod', 'smol-toml', 'toml-eslint-parser', 'yaml'];

/** Names of Node's own modules that compute and nothing else. */
export const PURE_NODE_NAMES = {
  'node:crypto': ['createHash', 'timingSafeEqual'],
  'node:path': ['basename', 'dirname', 'extname', 'isAbsolute', 'join', 'normalize'],
};
