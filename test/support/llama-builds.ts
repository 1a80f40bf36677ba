/**
 * The real llama-server, played as another build by a script in its place: its help is an earlier or a later one, and it refuses what that build lacks. Only one build
 * can be had from Debian's archive.
 */
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { NEWER, OLDER } from '../providers/gguf/help/help-texts.ts';

export const BUILDS = {
  older: {
    help: OLDER,
    lacks: ['--no-ui', '--offline', '--load-mode', 'all'],
    old: '--load-mode',
    fix: 'use "--no-mmap"',
    now: '--no-mmap',
  },
  newer: { help: NEWER, lacks: ['--no-slots', '--no-webui', '--metrics'], old: '--no-webui', fix: 'use "--no-ui"', now: '--no-ui' },
} as const;
export type Build = Readonly<{ help: string; lacks: readonly string[] }>;

/** `--no-mmap` and `--think-twice` are accepted, although the real server lacks them. `first`: commands before all others. */
const script = ({ lacks }: Build, { help, real, first = '' }: Places): string => `#!/bin/sh
[ "$1" = --help ] && exec cat '${help}'
${first}
for word in "$@"; do
  shift
  case "$word" in
    ${[...lacks, '--no-word-is-lacking'].join('|')}) echo "error: invalid argument: $word" >&2; exit 1;;
    --no-mmap) continue;;
    --think-twice) skip=1; continue;;
  esac
  if [ "$skip" = 1 ]; then skip=; else set -- "$@" "$word"; fi
done
exec '${real}' "$@"
`;

interface Places {
  readonly help: string;
  readonly real: string;
  readonly first?: string;
}

/** Answers chats with 500, and lets the real server answer the rest. */
const FAILING = `
import { spawn } from 'node:child_process';
import { createServer, request } from 'node:http';
const [real, ...args] = process.argv.slice(2);
const at = args.indexOf('--port') + 1;
const port = args[at];
const probe = createServer().listen(0, '127.0.0.1', () => {
  args[at] = String(probe.address().port);
  probe.close(() => {
    const server = spawn(real, args, { stdio: 'inherit' });
    for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => server.kill(signal));
    server.once('exit', (code) => process.exit(code ?? 0));
    createServer((req, res) => {
      if (req.url === '/v1/chat/completions') return req.resume().once('end', () => res.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"code":500,"message":"out of slots","type":"server_error"}}'));
      const options = { port: args[at], path: req.url, method: req.method, headers: req.headers };
      req.pipe(request(options, (answer) => answer.pipe(res.writeHead(answer.statusCode, answer.headers))).once('error', () => res.destroy()));
    }).listen(Number(port), '127.0.0.1');
  });
});
`;

/** A build whose chats fail, while it answers its probes. */
export async function writeFailingBuild(build: Build, dir: string, places: Places): Promise<string> {
  const script = path.join(dir, 'failing.mjs');
  const first = `exec '${process.execPath}' '${script}' '${places.real}' "$@"`;
  const file = await writeBuild(build, dir, { ...places, first });
  await writeFile(script, FAILING);
  return file;
}

/** Writes `llama-server` and `help.txt` into a directory. */
export async function writeBuild(build: Build, dir: string, places: Places): Promise<string> {
  const file = path.join(dir, 'llama-server');
  await mkdir(dir, { recursive: true });
  await writeFile(path.join(dir, 'help.txt'), build.help);
  await writeFile(file, script(build, places));
  await chmod(file, 0o755);
  return file;
}
