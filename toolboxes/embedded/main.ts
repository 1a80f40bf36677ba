/**
 * The embedded engine: a small server around the prebuilt CPU binaries of node-llama-cpp with the flags and paths of llama-server. It is
 * the fallback for machines without llama-server and supports only text chat, completions, embeddings and reranking.
 */
import { flushCompileCache } from 'node:module';
import { parseFlags } from './decide/parse-flags.ts';
import { createEngineServer } from './server.ts';

/** The computation of a token cannot be interrupted; after this time, the process exits anyway. */
const STOP_GRACE_MS = 3000;

const parsed = parseFlags(process.argv.slice(2));
if (!parsed.ok) {
  process.stderr.write(`error: ${parsed.message}\n`);
  process.exit(1);
}
const { flags } = parsed;

const server = createEngineServer(flags, Date.now);
server.http.on('error', (error) => {
  process.stderr.write(`error: The server cannot listen on ${flags.host}:${flags.port}: ${error.message}\n`);
  process.exit(1);
});
server.http.listen(flags.port, flags.host, () => {
  const address = server.http.address();
  const port = typeof address === 'object' && address !== null ? address.port : flags.port;
  process.stdout.write(`listening on http://${flags.host}:${port}\n`);
});

let stopping = false;
const stop = (): void => {
  if (stopping) process.exit(1);
  stopping = true;
  setTimeout(() => process.exit(0), STOP_GRACE_MS).unref();
  void server.stop().then(() => process.exit(0));
};
process.on('SIGTERM', stop);
process.on('SIGINT', stop);

try {
  const { loadEngine } = await import('./engine.ts');
  server.ready(await loadEngine(flags, flags.modulesDir ?? import.meta.dirname));
  // It may end by force.
  flushCompileCache();
  process.stdout.write(`model loaded: ${flags.alias}\n`);
} catch (error) {
  process.stderr.write(`error: The model "${flags.model}" cannot be loaded: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
