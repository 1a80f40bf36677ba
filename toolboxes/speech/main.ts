/** A small server for speech-to-text and text-to-speech around sherpa-onnx, with OpenAI's paths. README.md describes it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { flushCompileCache } from 'node:module';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { parseFlags, type Flags } from './decide/parse-flags.ts';
import { createEngine, type Engine } from './engine.ts';
import { hasFfmpeg } from './ffmpeg.ts';
import { loadFormParser } from './native.ts';
import { openModel } from './open-model.ts';
import { createSpeechServer, type SpeechServer } from './server.ts';

/** More threads make small models slower. */
const USUAL_THREADS = 4;
/** Requests end by themselves much earlier. */
const STOP_MS = 3000;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
/**
 * The young generation of V8's heap stays small. What is read of an upload is outside of it, and freed when the young generation is collected, which happens less often the more it has grown:
 * an hour of sound left up to 40 MB otherwise.
 */
const YOUNG_STAYS = '--semi-space-growth-factor=1';

async function main(flags: Flags): Promise<void> {
  // For "ps" and "top", which would say "node". Only Linux has it.
  await writeFile('/proc/self/comm', 'svc-speech').catch(() => undefined);
  const server = createSpeechServer(flags, Date.now);
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-speech-'));
  let engine: Engine | undefined;
  let stopping = false;
  const end = async (code: number): Promise<void> => {
    if (stopping) return;
    stopping = true;
    setTimeout(() => process.exit(code), STOP_MS).unref();
    engine?.stop();
    await server.stop();
    await rm(directory, { recursive: true, force: true });
    process.exit(code);
  };
  process.on('SIGTERM', () => void end(0));
  process.on('SIGINT', () => void end(0));
  const giveUp = (message: string): void => {
    process.stderr.write(`error: ${message}\n`);
    void end(EXIT_FAILED);
  };
  listen(server, flags, giveUp);
  try {
    const modules = flags.modules ?? import.meta.dirname;
    const [facts, compression] = await Promise.all([openModel(flags.model, flags.task), hasFfmpeg(flags.ffmpeg)]);
    const threads = flags.threads || Math.min(USUAL_THREADS, availableParallelism());
    const language = facts.voices[0]?.language ?? '';
    const model = { directory: path.resolve(flags.model), engine: facts.engine, language, voices: facts.voices.length };
    const order = { kind: 'load', modules, threads, scratch: directory, ...model } as const;
    const started = createEngine({
      order,
      directory,
      pieceMs: flags.timeout * 1000,
      log: (message) => process.stderr.write(`${message}\n`),
    });
    engine = started;
    void started.failed.then((why) =>
      giveUp(`Download the model "${flags.model}" again, or choose another one: the engine cannot load it: ${why}`),
    );
    server.ready({ facts, engine: started, ffmpeg: compression ? flags.ffmpeg : undefined, Parser: loadFormParser(modules), directory });
    await started.loaded;
    // It may end by force.
    flushCompileCache();
    if (!compression) process.stdout.write('ffmpeg was not found: only WAV files are read, and only "wav" and "pcm" are written\n');
    process.stdout.write(`model loaded: ${flags.aliases[0]} (${facts.family})\n`);
  } catch (error) {
    giveUp(`The model "${flags.model}" cannot be loaded: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function listen({ http }: SpeechServer, flags: Flags, giveUp: (message: string) => void): void {
  http.on('error', (error) =>
    giveUp(`Choose another address or port: the server cannot listen on ${flags.host}:${flags.port}: ${error.message}`),
  );
  http.listen(flags.port, flags.host, () => {
    const address = http.address();
    const port = typeof address === 'object' && address !== null ? address.port : flags.port;
    process.stdout.write(`listening on http://${flags.host.includes(':') ? `[${flags.host}]` : flags.host}:${port}\n`);
  });
}

setFlagsFromString(YOUNG_STAYS);
const parsed = parseFlags(process.argv.slice(2));
if (parsed.kind === 'run') await main(parsed.flags);
else if (parsed.kind === 'help') process.stdout.write(parsed.text);
else {
  process.stderr.write(`error: ${parsed.message}\n`);
  process.exitCode = EXIT_USAGE;
}
