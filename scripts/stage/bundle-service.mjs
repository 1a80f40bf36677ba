/**
 * Bundles the service for its image and its release archive: the modules of `src`, and of the packages that they
 * import, become few files, which Node loads faster than a thousand. A checkout runs its sources as they are.
 *
 * Each file of the bundle is in one folder below `src`: programs as `cli/svcctl.mjs`, shared parts in `chunks`.
 */
import { chmodSync, cpSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { isBuiltin } from 'node:module';
import { rolldown } from 'rolldown';
import { NOT_BUNDLED, ROOT } from './stage-packages.mjs';

const SRC = join(ROOT, 'src');
/** What is started by its path: programs, and modules of worker processes and threads. */
const ENTRIES = ['cli/svcctl.mjs', 'cli/install.ts', 'wiring/worker-main.ts', 'models/archive/bunzip-worker.ts'];
/** Files that are read beside their module. */
const DATA = ['models/catalogue/catalogue.toml'];

/** Installers start it by this name, as in earlier releases, and look into it for the actions that it knows. */
const INSTALL = "// 'first-slots', 'listen', 'report' and 'toolboxes'\nimport './install.mjs';\n";

/** Writes the bundle to `to`/src. */
export async function bundleService(to) {
  const places = {
    name: 'places',
    transform: (code, id) => (id.startsWith(`${SRC}/`) ? withPlaces(code, relative(SRC, id)) : undefined),
  };
  const input = Object.fromEntries(ENTRIES.map((entry) => [placeOf(entry), join(SRC, entry)]));
  const plugins = [places, unused, builtins, oneByte];
  const bundle = await rolldown({ cwd: ROOT, input, platform: 'node', external: NOT_BUNDLED, plugins });
  // Names stay, because people read stack traces.
  const minify = { mangle: false };
  await bundle.write({
    dir: join(to, 'src'),
    format: 'esm',
    minify,
    entryFileNames: '[name].mjs',
    chunkFileNames: 'chunks/[name]-[hash].mjs',
  });
  await bundle.close();
  for (const name of DATA) cpSync(join(SRC, name), join(to, 'src', name));
  writeFileSync(join(to, 'src/cli/install.ts'), INSTALL);
  chmodSync(join(to, 'src/cli/svcctl.mjs'), 0o755);
}

/** `models/archive/bunzip-worker.ts` → `archive/bunzip-worker`. */
const placeOf = (file) =>
  file
    .split('/')
    .slice(-2)
    .join('/')
    .replace(/\.m?[jt]s$/, '');

/**
 * Packages that Fastify requires only for schemas, which the service gives it none of, and for requests of tests. V8 would keep
 * their text in memory, 0.4 MB.
 */
const UNUSED = new Set(['@fastify/ajv-compiler', '@fastify/fast-json-stringify-compiler', 'light-my-request']);
const unused = {
  name: 'unused',
  resolveId: (id) => (UNUSED.has(id) ? `\0unused:${id}` : undefined),
  load: (id) => (id.startsWith('\0unused:') ? `throw new Error('A release does not contain "${id.slice(8)}"');` : undefined),
};

/**
 * Once a module of Node's own is imported, Node evaluates all that it offers: of `node:http`, that is the whole of undici
 * (40 ms, 14 MB). The parts ask for it in a way that evaluates only what is used.
 */
const builtins = {
  name: 'builtins',
  renderChunk(code) {
    const imports = this.parse(code).body.filter(({ type, source }) => type === 'ImportDeclaration' && isBuiltin(source.value));
    return imports.reduceRight((text, found) => text.slice(0, found.start) + withoutImport(found) + text.slice(found.end), code);
  },
};

/** V8 keeps the text of each part in memory, at two bytes for each character if a single one is not ASCII. */
const oneByte = {
  name: 'one-byte',
  generateBundle(_options, parts) {
    for (const part of Object.values(parts)) {
      if (/\\[^\0-\x7F]/.test(part.code)) throw new Error(`"${part.fileName}" escapes a character that must be written in another way`);
      part.code = part.code.replaceAll(/[^\0-\x7F]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
    }
  },
};

/** `import { a as b } from 'node:fs'` → `const { a: b } = …` */
function withoutImport({ source, specifiers }) {
  const names = specifiers.map(({ imported, local }) => ({ from: imported?.name ?? 'default', to: local.name }));
  // A part may call its own import "process".
  const module = `globalThis.process.getBuiltinModule('${source.value}')`;
  return names.map(({ from, to }) => `const ${from === 'default' ? to : `{ ${from}: ${to} }`} = ${module};`).join('\n');
}

/** All forms in which a module may ask for its own place. */
const OWN_PLACE = /import\.meta\.dirname|new URL\('([a-z-]+\.ts)', import\.meta\.url\)|import\.meta/g;

/** Replaces what a module knows of its own place, as it moves to another folder, two below the root as well. */
function withPlaces(code, file) {
  return code.replaceAll(OWN_PLACE, (form, started) => {
    if (form === 'import.meta.dirname') return `(import.meta.dirname + '/../${dirname(file)}')`;
    if (started === undefined) throw new Error(`Teach the bundle what "${file}" reads from import.meta`);
    const target = join(dirname(file), started);
    if (!ENTRIES.includes(target)) throw new Error(`Name "${target}" among the entries of the bundle: "${file}" starts it`);
    return `new URL('../${placeOf(target)}.mjs', new URL('.', import.meta.url))`;
  });
}
