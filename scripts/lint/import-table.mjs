/**
 * Which folder of src/ may import what. This table is the only definition of the directions: the rule "house/import-direction" reads it.
 * A folder may always import itself. `types` are allowed in `import type` only, `more` in one file only, and `outside`, which are paths of the checkout; `packages` undefined: any installed package.
 */
const SHARED = ['schema/', 'platform/'];

export const MAY_IMPORT = {
  schema: { values: [], packages: ['zod'] },
  platform: { values: ['schema/'], types: ['reconciler/ports.ts', 'providers/provider.ts'] },
  reconciler: { values: [...SHARED, 'providers/provider.ts', 'evaluation/decide/'] },
  gateway: {
    values: [...SHARED, 'providers/provider.ts', 'reconciler/board.ts', 'remote/'],
    types: ['reconciler/ports.ts', 'providers/translation.ts'],
  },
  providers: {
    values: SHARED,
    more: { 'providers/install-engine.ts': ['files/directory-lock.ts'] },
    // The image for speech is built from its own folder, and both must say the same of a model.
    outside: { 'providers/stt/stt.ts': ['toolboxes/speech/decide/read-ggml.ts'] },
  },
  remote: { values: SHARED, types: ['reconciler/ports.ts', 'providers/provider.ts'] },
  models: {
    values: [...SHARED, 'files/'],
    types: ['reconciler/ports.ts', 'providers/provider.ts'],
    // Generates the files of the demo models.
    outside: { 'models/model-sources.ts': ['toolboxes/demo/demo-models.ts'] },
  },
  auth: { values: [...SHARED, 'files/'] },
  usage: { values: SHARED, types: ['gateway/exchange-deps.ts'] },
  traces: {
    values: [...SHARED, 'gateway/route/decide/'],
    types: ['gateway/exchange-deps.ts', 'gateway/trace/', 'reconciler/ports.ts'],
    // Loaded where OpenTelemetry is switched on, and nowhere else.
    packages: [
      '@opentelemetry/api',
      '@opentelemetry/exporter-trace-otlp-proto',
      '@opentelemetry/resources',
      '@opentelemetry/sdk-trace',
      'node:os',
    ],
  },
  evaluation: { values: [...SHARED, 'providers/decide/'] },
  files: { values: [...SHARED, 'reconciler/ports.ts'] },
  host: { values: [...SHARED, 'files/', 'evaluation/decide/', 'reconciler/ports.ts'] },
  cluster: {
    // A follower builds its board from the statuses of the leader, by the same rules.
    values: [
      ...SHARED,
      'files/',
      'models/',
      'evaluation/decide/',
      'reconciler/ports.ts',
      'reconciler/decide/outcome/board-slot.ts',
      'reconciler/decide/rules/admission.ts',
    ],
    types: ['providers/provider.ts', 'reconciler/board.ts', 'auth/shared-token-store.ts'],
  },
  api: {
    values: [...SHARED, 'gateway/', 'auth/', 'models/', 'usage/decide/', 'reconciler/board.ts'],
    types: ['usage/'],
  },
  turbo: {
    values: [...SHARED, 'gateway/', 'api/', 'reconciler/board.ts'],
    types: ['reconciler/ports.ts', 'providers/provider.ts', 'auth/check-token.ts'],
  },
  dashboard: { values: ['schema/words/access.ts'], types: ['schema/'] },
  wiring: {
    values: [
      ...SHARED,
      'reconciler/',
      'gateway/',
      'evaluation/',
      'providers/',
      'models/',
      'auth/',
      'files/',
      'host/',
      'remote/',
      'usage/',
      'traces/',
      'api/',
      'turbo/',
    ],
    types: ['cluster/'],
    // A service on one machine never loads `cluster/`: only this file imports it, and it is itself loaded by a dynamic import in cluster mode.
    more: { 'wiring/cluster-world.ts': ['cluster/'] },
  },
  cli: { values: ['*'] },
  'main.ts': { values: ['*'] },
};

/** Packages without side effects: what a `decide/` folder may import besides `schema/`. */
export const PURE_PACKAGES = ['zod', 'smol-toml', 'toml-eslint-parser', 'yaml', 'croner', 'ajv/dist/2020.js', 're2js'];

/** Names of Node's own modules that have no side effects. */
export const PURE_NODE_NAMES = {
  'node:crypto': ['createHash', 'timingSafeEqual'],
  'node:path': ['basename', 'dirname', 'extname', 'isAbsolute', 'join', 'normalize'],
};
