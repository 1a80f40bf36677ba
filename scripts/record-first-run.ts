/**
 * Records the terminal session of the README: starts the service in a temporary directory, runs real commands against it, and draws their output as
 * `docs/images/first-run.svg`. Run it with `node scripts/record-first-run.ts` when messages have changed. The first start downloads the embedded engine.
 */
import { spawn, execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify, stripVTControlCharacters } from 'node:util';
import { renderTerminal } from './render-terminal.ts';

const CHECKOUT = dirname(import.meta.dirname);
const PICTURE = join(CHECKOUT, 'docs/images/first-run.svg');
const URL = 'http://127.0.0.1:18911';
const STARTED_WITHIN_MS = 300_000;
const CHAT = `curl -s ${URL}/v1/chat/completions -H 'content-type: application/json' \\
    -d '{"messages":[{"role":"user","content":"Hello"}]}' | grep -o '"content":"[^"]*"'`;
const EDIT = `sed -i 's/^default = .*/default = "demo-owl"/' .svc/config/slots/primary.toml`;
/** Without the date, and as far as it fits into a line. */
const TIMELINE = 'svcctl timeline primary --limit 8 | cut -c 12-19,25-112';

const root = await mkdtemp(join(tmpdir(), 'svc-first-run-'));
const env = {
  ...process.env,
  PATH: `${join(root, 'bin')}:${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
  SVC_LISTEN: URL.slice('http://'.length),
  SVC_CONFIG_DIR: join(root, '.svc/config'),
  SVC_STATE_DIR: join(root, '.svc/state'),
  SVCCTL_SERVER: URL,
};

try {
  await mkdir(join(root, 'bin'));
  const svcctl = join(CHECKOUT, 'src/cli/svcctl.mjs');
  await writeFile(join(root, 'bin/svcctl'), `#!/bin/sh\nexec node "${svcctl}" "$@"\n`, { mode: 0o755 });
  const service = spawn(process.execPath, [svcctl, 'serve', '--checkout'], { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const lines = await session(await welcomeOf(service.stdout));
    await mkdir(dirname(PICTURE), { recursive: true });
    await writeFile(PICTURE, renderTerminal(lines, { title: 'svc: the first run', columns: 98 }));
  } finally {
    service.kill('SIGINT');
    await once(service, 'exit');
  }
} finally {
  await rm(root, { recursive: true, force: true });
}

async function session(welcome: string): Promise<readonly string[]> {
  await shell('svcctl wait slot/primary slot/embed --for condition=Ready --timeout 5m');
  const lines = [`$ SVC_LISTEN=${env.SVC_LISTEN} npm start`, ...welcome.split('\n'), '', '# In another terminal:'];
  lines.push(...(await typed('svcctl get slots')), '', ...(await typed(CHAT)), '', ...(await typed(EDIT)));
  await untilAnswered('owl');
  lines.push(...(await typed(CHAT)), '', ...(await typed(TIMELINE)), '', ...(await typed('svcctl explain primary')));
  return lines;
}

/** What the service prints before the first line of its log. */
async function welcomeOf(stdout: NodeJS.ReadableStream): Promise<string> {
  const chunks: string[] = [];
  const timeout = AbortSignal.timeout(STARTED_WITHIN_MS);
  stdout.setEncoding('utf8').on('data', (chunk: string) => chunks.push(chunk));
  while (!/Ctrl-C\n/.test(chunks.join(''))) await sleep(100, undefined, { signal: timeout });
  return stripVTControlCharacters(chunks.join('').split('Ctrl-C\n')[0] ?? '') + 'Ctrl-C';
}

async function untilAnswered(word: string): Promise<void> {
  for (let tries = 0; !(await shell(CHAT)).includes(word); tries += 1) {
    if (tries === 100) throw new Error(`Check the slot "primary": no answer contained "${word}" within 30 s`);
    await sleep(300);
  }
  // The old workload drains.
  await sleep(2000);
}

async function typed(command: string): Promise<readonly string[]> {
  const output = await shell(command);
  return [`$ ${command}`, ...output.trimEnd().split('\n')].flatMap((line) => line.split('\n')).filter((line) => line !== '');
}

async function shell(command: string): Promise<string> {
  const { stdout } = await promisify(execFile)('bash', ['-c', command], { cwd: root, env });
  // Messages may contain absolute paths of the temporary directory.
  return stdout.replaceAll(`${root}/`, '');
}
