/** Builds the dashboard into `dashboard/dist`, with compressed copies of its files. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const DASHBOARD = join(ROOT, 'dashboard');
const DIST = join(DASHBOARD, 'dist');
const STAMP = '.stamp';
/** Besides `dashboard/src`. */
const SOURCES = [
  'dashboard/index.html',
  'dashboard/vite.config.mjs',
  'dashboard/tsconfig.json',
  'package-lock.json',
  'scripts/stage/build-dashboard.mjs',
];
/** Smaller files do not shrink. */
const LEAST_BYTES = 512;

/** Does nothing if the sources have not changed since the last build. Nothing is downloaded. */
export async function buildDashboard() {
  const stamp = stampOfSources();
  if (readStamp() === stamp) return;
  // Loaded only if there is something to build: `npm start` pays for it once.
  const { build } = await import('vite');
  // With any other value, such as that of a test run, it would be built for development.
  process.env.NODE_ENV = 'production';
  // A folder of its own, so that two builds at once, or one that is interrupted, leave no half of a dashboard.
  const made = mkdtempSync(join(DASHBOARD, 'dist-'));
  try {
    await build({ root: DASHBOARD, configFile: join(DASHBOARD, 'vite.config.mjs'), logLevel: 'error', build: { outDir: made } });
    compress(made);
    writeFileSync(join(made, STAMP), stamp);
    // Another build of the same sources was faster, and somebody may read its files already.
    if (readStamp() === stamp) return;
    rmSync(DIST, { recursive: true, force: true });
    try {
      renameSync(made, DIST);
    } catch (error) {
      // Or in this very moment.
      if (readStamp() !== stamp) throw error;
    }
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

function stampOfSources() {
  const hash = createHash('sha256');
  for (const path of [...filesIn(join(DASHBOARD, 'src')), ...SOURCES.map((name) => join(ROOT, name))].toSorted()) {
    hash
      .update(`${path.slice(ROOT.length)}\0`)
      .update(readFileSync(path))
      .update('\0');
  }
  return hash.digest('hex');
}

function filesIn(directory) {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

function readStamp() {
  try {
    return readFileSync(join(DIST, STAMP), 'utf8');
  } catch {
    return undefined;
  }
}

function compress(directory) {
  for (const path of filesIn(directory)) {
    const content = readFileSync(path);
    if (content.length < LEAST_BYTES) continue;
    writeFileSync(`${path}.br`, brotliCompressSync(content));
    writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
  }
}
