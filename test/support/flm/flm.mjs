#!/usr/bin/env node
// The stand-in for FastFlowLM as a program: `list`, `validate` and `serve`, with a parser that refuses unknown flags and those that are given twice.
import { appendFileSync, readFileSync } from 'node:fs';
import { startFlm } from './flm-server.ts';
import { CHAT_MODELS, modelList, TRIO } from './model-list.ts';

const [command, ...rest] = process.argv.slice(2);
// Beside the program, as it would keep its models in a directory of its own.
const directory = new URL('.', import.meta.url).pathname;
const installed = (() => {
  try {
    return readFileSync(`${directory}installed.txt`, 'utf8').split('\n').filter(Boolean);
  } catch {
    return TRIO;
  }
})();
const note = (text) => appendFileSync(`${directory}notes.txt`, `${text}\n`);

if (command === 'list') {
  if (!rest.includes('--json')) process.exit(1);
  process.stdout.write(modelList(installed));
  process.exit(0);
}
if (command === 'validate') {
  // The limit is the real one of this process, and so that of whoever started it.
  const limit = /^Max locked memory +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 'unknown';
  const memlock = {
    memlock_ok: limit === 'unlimited' || Number(limit) >= 100 * 2 ** 20,
    memlock_limit: limit === 'unlimited' ? 'infinity' : limit,
  };
  const facts = { kernel_ok: true, all_fw_ok: true, enough_cols: true, amd_device_found: false, ...memlock };
  console.log(JSON.stringify({ object: 'npu_stack_validation', ...facts, ready: false }));
  process.exit(0);
}
if (command !== 'serve') process.exit(1);

const flags = new Map();
let tag;
for (let at = 0; at < rest.length; at += 1) {
  const [flag, joined] = rest[at].split('=');
  if (!flag.startsWith('-')) {
    tag = flag;
    continue;
  }
  const known = ['--host', '--port', '--asr', '--embed', '--socket', '--q-len', '--cors', '--ctx-len', '--pmode'];
  if (!known.includes(flag)) {
    console.error(`Error: unrecognised option '${flag}'`);
    process.exit(1);
  }
  if (flags.has(flag)) {
    console.error(`Error: option '${flag}' cannot be specified more than once`);
    process.exit(1);
  }
  flags.set(flag, joined ?? rest[(at += 1)]);
}
if (tag !== undefined && !CHAT_MODELS.includes(tag)) {
  console.error(`[WARNING] Model ${tag} not found, using llama3.2:1b`);
  tag = 'llama3.2:1b';
}
const wanted = [
  tag,
  flags.get('--asr') === '1' ? 'whisper-v3:turbo' : undefined,
  flags.get('--embed') === '1' ? 'embed-gemma:300m' : undefined,
];
for (const each of wanted.filter((name) => name !== undefined && !installed.includes(name))) note(`Downloads ${each}`);
note(`serve ${rest.join(' ')}`);
const flm = await startFlm({
  host: flags.get('--host') ?? '127.0.0.1',
  port: Number(flags.get('--port') ?? 52_625),
  model: tag,
  asr: flags.get('--asr') === '1',
  embed: flags.get('--embed') === '1',
  connections: Number(flags.get('--socket') ?? 10),
  queueLength: Number(flags.get('--q-len') ?? 10),
  crash() {
    for (const each of flm.mishaps) note(each);
    process.abort();
  },
});
console.log(`[FLM]  WebServer started on port ${flm.port}`);
for (const signal of ['SIGTERM', 'SIGINT'])
  process.on(signal, () => {
    for (const each of flm.mishaps) note(each);
    void flm.close().then(() => process.exit(0));
  });
